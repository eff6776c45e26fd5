import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

// While developing, ROLLCALL_URL is the server that answers what is not a file here.
const server = process.env.ROLLCALL_URL ?? 'http://127.0.0.1:8080';
// The check of what is committed builds into a folder of its own.
const out = process.env.CONSOLE_DIST ?? '../dist';

export default defineConfig({
  base: '/console/',
  plugins: [svelte()],
  build: {
    outDir: out,
    emptyOutDir: true,
    target: ['chrome123', 'firefox120', 'safari17.5'],
    // Files are served by their own address: the policy allows no data: addresses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
    // What is bundled, with the text of its licence: a release says so.
    license: { fileName: 'licences.json' },
  },
  server: {
    proxy: {
      '/v1': { target: server, changeOrigin: true },
      '/openapi.json': { target: server, changeOrigin: true },
      '/docs': { target: server, changeOrigin: true },
      '/metrics': { target: server, changeOrigin: true },
      '/readyz': { target: server, changeOrigin: true },
    },
  },
});
