// Makes src/lib/api/schema.d.ts of the OpenAPI document of a server, or of a file:
// ROLLCALL_OPENAPI. It takes the shapes that types.ts names, and those that they are made
// of: what else the API has may change without the console. A test of Go compares the sum.
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import openapiTS, { astToString } from 'openapi-typescript';

const here = (name) => new URL(`src/lib/api/${name}`, import.meta.url);
const source = process.env.ROLLCALL_OPENAPI ?? 'http://127.0.0.1:8080/openapi.json';
const text = /^https?:/.test(source) ? await (await fetch(source)).text() : await readFile(source, 'utf8');
const document = JSON.parse(text);
const all = document.components.schemas;

// What a type is made of. Words and bounds are no part of it.
const kept = ['$ref', 'type', 'enum', 'required', 'items', 'properties', 'additionalProperties', 'oneOf', 'anyOf', 'allOf'];

function shape(schema) {
  if (Array.isArray(schema)) return schema.map(shape);
  if (schema === null || typeof schema !== 'object') return schema;
  const out = {};
  for (const name of Object.keys(schema).filter((n) => kept.includes(n)).sort()) {
    if (name === 'properties') out[name] = Object.fromEntries(Object.keys(schema[name]).sort().map((n) => [n, shape(schema[name][n])]));
    else out[name] = shape(schema[name]);
  }
  return out;
}

const wanted = [...(await readFile(here('types.ts'), 'utf8')).matchAll(/Schemas\['(\w+)'\]/g)].map((m) => m[1]);
const found = {};
while (wanted.length) {
  const name = wanted.pop();
  if (found[name]) continue;
  if (!all[name]) throw new Error(`types.ts names ${name}, which the document does not have`);
  found[name] = shape(all[name]);
  for (const [, other] of JSON.stringify(found[name]).matchAll(/#\/components\/schemas\/(\w+)/g)) wanted.push(other);
}
const schemas = Object.fromEntries(Object.keys(found).sort().map((name) => [name, found[name]]));
const sum = createHash('sha256').update(JSON.stringify(schemas)).digest('hex');
const made = astToString(await openapiTS({ openapi: document.openapi, info: document.info, paths: {}, components: { schemas } }, { alphabetize: true }));
await writeFile(here('schema.d.ts'), `// Made by "npm run types" of the OpenAPI document. Do not edit.\n// Sum of the shapes: ${sum}\n\n${made}`);
