// The shapes of the API, by short names. What the generated document does not have yet
// stands here in full.
import type { components } from './schema';

type Schemas = components['schemas'];

export type Session = Schemas['Session'];
export type SessionPage = Schemas['PageSession'];
export type Summary = Schemas['Summary'];
export type Seen = Schemas['Seen'];
export type SeenPage = Schemas['PageSeen'];
export type Friend = Schemas['Friend'];
export type FriendPage = Schemas['PageFriend'];
export type Ban = Schemas['BanRecord'];
export type BanPage = Schemas['PageBanRecord'];
export type Ended = Schemas['Ended'];
export type Kick = Schemas['KickRequest'];
export type RollEvent = Schemas['Event'];
export type EventPage = Schemas['EventPage'];
export type Stats = Schemas['Stats'];
export type Series = Schemas['Series'];
export type Retention = Schemas['Retention'];
export type Cohort = Schemas['Cohort'];
export type Lifecycle = Schemas['Lifecycle'];
export type LifecycleRow = Schemas['LifecycleRow'];
export type Stickiness = Schemas['Stickiness'];
export type StreakList = Schemas['StreakList'];
export type ActivePage = Schemas['ActivePage'];
export type Attended = Schemas['Attended'];
export type ArchiveRun = Schemas['ArchiveRunRecord'];
export type Key = Schemas['KeyRecord'];
export type NewKey = Schemas['NewKey'];
export type Webhook = Schemas['WebhookRecord'];
export type Delivery = Schemas['DeliveryRecord'];
export type KindUse = Schemas['KindUse'];
export type VisitName = Schemas['VisitName'];

export type Role = 'reader' | 'writer' | 'admin';
export type Cause = 'logout' | 'kicked' | 'replaced' | 'expired' | 'lifetime' | 'banned' | 'erased';

export interface Items<T> {
  items: T[];
}

export interface ConsoleSession {
  role: Role;
  /** How it was signed in; off: nobody has to. */
  by?: 'link' | 'key' | 'proxy' | 'off';
  key_id?: string;
  name: string;
  expires_at?: string;
  idle_expires_at?: string;
  server: { engine: string; version: string; timezone: string; window_seconds: number };
}

/** What was counted in a minute, or in an hour. */
export interface Sample {
  at: string;
  online: number;
  sessions: number;
  logins: number;
  ends?: Partial<Record<Cause, number>>;
  beats?: number;
  online_min?: number;
  online_max?: number;
  sessions_min?: number;
  sessions_max?: number;
}

export interface History {
  step: string;
  items: Sample[];
}

export type CountBy = 'app' | 'device' | 'kind';

export interface SessionCounts {
  by: CountBy;
  items: { value: string; sessions: number }[];
  other: number;
  total: number;
}

export interface TimelineItem {
  at: string;
  type: string;
  session?: string;
  app?: string;
  device?: string;
  ip?: string;
  cause?: Cause;
  reason?: string;
  actor?: string;
}

export interface Timeline {
  items: TimelineItem[];
  next?: string;
}

export interface AuditEntry {
  seq: number;
  at: string;
  actor: string;
  action: string;
  target?: string;
  detail?: unknown;
  hash: string;
}

export interface AuditPage {
  items: AuditEntry[];
  next?: string;
}
