// Makes src/api of the OpenAPI document of a server, or of a file: ROLLCALL_OPENAPI.
export default {
  input: process.env.ROLLCALL_OPENAPI ?? 'http://127.0.0.1:8080/openapi.json',
  output: { path: 'src/api', importFileExtension: '.js' },
  plugins: ['@hey-api/client-fetch', '@hey-api/typescript', '@hey-api/sdk'],
  logs: { file: false },
};
