import { RollcallError } from './error.js';

/** What a webhook says. */
export interface Webhook<Data = unknown> {
  type: string;
  /** When it happened, RFC 3339. */
  timestamp: string;
  data: Data;
  /** The id of the message: repeats have the same. */
  id: string;
}

/** How a webhook is checked. */
export interface WebhookOptions {
  /** How far its time may be from now, in seconds; default 300. */
  tolerance?: number;
  /** The time now, in milliseconds; default `Date.now()`. */
  now?: number;
}

/**
 * Checks that a webhook was sent by a server that knows the secret, and returns what it
 * says. The format is that of Standard Webhooks. It throws a `RollcallError` with the
 * code `unauthenticated` if the webhook is not to be believed.
 *
 * @param body The body as it came, not parsed and written again.
 * @param headers The headers of the request: `webhook-id`, `webhook-timestamp`, `webhook-signature`.
 * @param secrets The secret (`whsec_…`), or several while one is being changed.
 */
export async function verifyWebhook<Data = unknown>(
  body: string | Uint8Array,
  headers: Headers | Record<string, string | string[] | undefined>,
  secrets: string | string[],
  options: WebhookOptions = {},
): Promise<Webhook<Data>> {
  const id = header(headers, 'webhook-id');
  const timestamp = header(headers, 'webhook-timestamp');
  checkTime(timestamp, options);
  const signatures = header(headers, 'webhook-signature')
    .split(' ')
    .filter((one) => one.startsWith('v1,'))
    .map((one) => bytesOf(one.slice('v1,'.length)));

  const text = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  const signed = joined(new TextEncoder().encode(`${id}.${timestamp}.`), text);

  // Every signature is compared with every secret, and each in constant time: how long
  // this takes says nothing of what fitted.
  let genuine = false;
  for (const key of await Promise.all([secrets].flat().map(keyOf))) {
    for (const signature of signatures) {
      if (signature && (await crypto.subtle.verify('HMAC', key, signature, signed))) genuine = true;
    }
  }
  if (!genuine) throw refused('webhook-signature', 'has none that was made with the secret');
  const said = JSON.parse(new TextDecoder().decode(text)) as Omit<Webhook<Data>, 'id'>;
  return { ...said, id };
}

function refused(field: string, detail: string): RollcallError {
  return new RollcallError('unauthenticated', detail, { field });
}

function header(headers: Headers | Record<string, string | string[] | undefined>, name: string): string {
  const value = headers instanceof Headers ? headers.get(name) : Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
  if (typeof value !== 'string' || value === '') throw refused(name, 'is missing');
  return value;
}

/** A webhook that is old may have been recorded and sent again. */
function checkTime(timestamp: string, { tolerance = 300, now = Date.now() }: WebhookOptions): void {
  // Nothing is further away than NaN: each of these would let in what is old.
  for (const [field, value] of Object.entries({ tolerance, now })) {
    if (!Number.isFinite(value)) throw new RollcallError('invalid_argument', 'must be a number', { field });
  }
  if (!/^\d{1,12}$/.test(timestamp)) throw refused('webhook-timestamp', 'must be seconds since 1970');
  const away = Math.abs(now / 1000 - Number(timestamp));
  if (!(away <= tolerance)) throw refused('webhook-timestamp', `is ${Math.round(away)} s from now, the limit is ${tolerance}`);
}

async function keyOf(secret: string): Promise<CryptoKey> {
  const bytes = bytesOf(secret.replace(/^whsec_/, ''));
  if (!bytes || bytes.length === 0) throw new RollcallError('invalid_argument', 'must be whsec_ and base64', { field: 'secret' });
  return crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify']);
}

/** Decodes base64; `undefined` if it is none. */
function bytesOf(base64: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(a.length + b.length);
  out.set(a);
  out.set(b, a.length);
  return out;
}
