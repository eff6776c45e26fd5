export { Rollcall } from './client.js';
export type { CallOptions, EventOptions, FriendFilter, Kick, Login, Options, SessionFilter } from './client.js';
export { RollcallError } from './error.js';
export type { ErrorCode, ErrorDetails } from './error.js';
export type { FriendChange, Reset, RollcallEvent } from './events.js';
export { verifyWebhook } from './webhook.js';
export type { Webhook, WebhookOptions } from './webhook.js';
export type { Event, Friend, Problem, Seen, Session, Status } from './api/index.js';
