// Makes src/lib/api/schema.d.ts of the OpenAPI document of a server, or of a file:
// ROLLCALL_OPENAPI. Only the shapes are taken; the console knows its paths.
import { readFile, writeFile } from 'node:fs/promises';
import openapiTS, { astToString } from 'openapi-typescript';

const source = process.env.ROLLCALL_OPENAPI ?? 'http://127.0.0.1:8080/openapi.json';
const text = /^https?:/.test(source) ? await (await fetch(source)).text() : await readFile(source, 'utf8');
const document = JSON.parse(text);
document.paths = {};
const made = astToString(await openapiTS(document, { alphabetize: true }));
await writeFile(new URL('src/lib/api/schema.d.ts', import.meta.url), `// Made by "npm run types" of the OpenAPI document. Do not edit.\n\n${made}`);
