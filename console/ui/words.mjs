// Checks the words of the console: each text of English has one of Chinese that is written
// in Chinese, with the punctuation of Chinese. That none is missing, the compiler checks.
//
//   node words.mjs
import { readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { createServer } from 'vite';

/** What readers of Chinese are told as readers of English are. */
const alike = /^(URL|ID|User-Agent|p99|CSV|JSON|Webhook|region=eu|10\.0\.0\.0\/8、2001:db8::7|[^\p{L}]*)$/u;
const chinese = /\p{Script=Han}/u;
const half = /\p{Script=Han}[,;:!?]|[,;:!?]\p{Script=Han}|\p{Script=Han}\.{2,}|\p{Script=Han}\.$/u;

// The modules look at the browser's language and settings when they are loaded.
const element = { dataset: {}, lang: '' };
Object.assign(globalThis, { document: { documentElement: element }, matchMedia: () => ({ addEventListener() {} }) });
Object.defineProperty(globalThis, 'navigator', { value: { languages: ['en'] }, configurable: true });

const root = new URL('./src', import.meta.url).pathname;
const files = readdirSync(root, { recursive: true })
  .map((name) => join(root, name))
  .filter((name) => /(\.i18n|\/i18n\/common)\.ts$/.test(name));

/** Texts by their place; what a text is made of stands in it as it is. */
function* texts(value, place) {
  if (typeof value === 'string') yield [place, value];
  else if (typeof value === 'function') yield [place, String(value('7', 2, 'x', 'y', 'z'))];
  else if (value && typeof value === 'object') for (const [name, part] of Object.entries(value)) yield* texts(part, `${place}.${name}`);
}

const server = await createServer({ root: new URL('.', import.meta.url).pathname, server: { middlewareMode: true, ws: false, hmr: false }, appType: 'custom', logLevel: 'error' });
const faults = [];
let count = 0;
for (const file of files) {
  for (const [name, words] of Object.entries(await server.ssrLoadModule(file))) {
    const english = new Map(texts(words.en, name));
    for (const [place, text] of texts(words['zh-CN'], name)) {
      count += 1;
      const at = `${relative(root, file)}: ${place}`;
      if (!english.has(place)) faults.push(`${at} is in Chinese only`);
      else if (half.test(text)) faults.push(`${at} has punctuation of English: ${text}`);
      else if (!chinese.test(text) && /\p{L}{2}/u.test(english.get(place)) && !alike.test(text)) faults.push(`${at} is not translated: ${text}`);
      english.delete(place);
    }
    for (const place of english.keys()) faults.push(`${relative(root, file)}: ${place} is in English only`);
  }
}
await server.close();
for (const fault of faults) console.error(fault);
if (!count) console.error('no words were found');
process.exit(faults.length || !count ? 1 : 0);
