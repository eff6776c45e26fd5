// The shapes of the API that the console knows, by short names. "npm run types" makes
// schema.d.ts of those that stand here.
import type { components } from './schema';

type Schemas = components['schemas'];

export type ConsoleSession = Schemas['ConsoleSession'];
export type ConsoleState = Schemas['ConsoleState'];
export type Session = Schemas['Session'];
export type SessionPage = Schemas['PageSession'];
export type SessionCounts = Schemas['SessionCounts'];
export type Summary = Schemas['Summary'];
export type Seen = Schemas['Seen'];
export type SeenPage = Schemas['PageSeen'];
export type Friend = Schemas['Friend'];
export type FriendPage = Schemas['PageFriend'];
export type Ban = Schemas['BanRecord'];
export type BanPage = Schemas['PageBanRecord'];
export type NewBan = Schemas['NewBan'];
export type Ended = Schemas['Ended'];
export type RollEvent = Schemas['Event'];
export type EventPage = Schemas['EventPage'];
/** An event of a user, with what it says of the session that it is about. */
export type TimelineItem = Schemas['TimelineEvent'];
export type Timeline = Schemas['TimelinePage'];
/** What was counted in a minute, or in an hour. */
export type Sample = Schemas['Sample'];
export type History = Schemas['SampleList'];
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
export type ArchiveRuns = Schemas['ArchiveRuns'];
export type Key = Schemas['KeyRecord'];
export type NewKey = Schemas['NewKey'];
export type Webhook = Schemas['WebhookRecord'];
export type Delivery = Schemas['DeliveryRecord'];
export type KindUse = Schemas['KindUse'];
export type VisitName = Schemas['VisitName'];
export type AuditEntry = Schemas['AuditRecord'];
export type AuditPage = Schemas['AuditPage'];

export type Role = ConsoleSession['role'];
export type Cause = NonNullable<RollEvent['cause']>;
export type CountBy = SessionCounts['by'];

export interface Items<T> {
  items: T[];
}
