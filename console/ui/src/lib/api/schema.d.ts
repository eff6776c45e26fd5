// Made by "npm run types" of the OpenAPI document. Do not edit.

export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        Accepted: {
            /** Format: int64 */
            accepted: number;
        };
        ActivePage: {
            /**
             * Format: date
             * @description the first day asked for
             * @example 2026-02-03
             */
            from: string;
            items: string[];
            /** @description cursor to what follows; absent on the last page */
            next?: string;
            /**
             * Format: date
             * @description the last day asked for
             * @example 2026-02-03
             */
            to: string;
            /**
             * Format: int64
             * @description of the whole list
             */
            total: number;
        };
        ArchiveRunRecord: {
            /**
             * Format: int64
             * @description days that left the hot store; one of several kinds counts once, with the first that leaves
             */
            days_offloaded: number;
            /** @description why it failed */
            error?: string;
            /**
             * Format: date-time
             * @description absent while it is running
             * @example 2026-02-03T04:05:06.789Z
             */
            finished_at?: string;
            /** Format: int64 */
            id: number;
            /** @description how far it got */
            position?: string;
            /**
             * Format: int64
             * @description user-months copied
             */
            rows_written: number;
            /** @description which process does it */
            runner: string;
            /**
             * Format: date-time
             * @example 2026-02-03T04:05:06.789Z
             */
            started_at: string;
            /** @enum {string} */
            state: "running" | "completed" | "failed";
        };
        Attended: {
            any: boolean;
            /** Format: int64 */
            count: number;
            days: string[];
            /**
             * Format: date
             * @description the first day asked for; absent with months
             * @example 2026-02-03
             */
            from?: string;
            /** @description the months asked for */
            months?: string[];
            streak?: components["schemas"]["Streak"];
            /** @description streak is absent, as the archive has days of the user and does not answer */
            streak_unavailable?: boolean;
            /**
             * Format: date
             * @description the last day asked for; absent with months
             * @example 2026-02-03
             */
            to?: string;
        };
        BanRecord: {
            /** @description who set it */
            actor?: string;
            /**
             * Format: date-time
             * @example 2026-02-03T04:05:06.789Z
             */
            at: string;
            reason?: string;
            /**
             * Format: date-time
             * @example 2026-02-03T04:05:06.789Z
             */
            until: string;
            /** @description absent once the user was erased */
            user?: string;
        };
        BanRequest: {
            /**
             * @description 1s to 10 years
             * @example 5m
             */
            duration: string | number;
            /** @description shown to the client, ≤ 256 bytes */
            reason?: string;
        };
        BeatsRequest: {
            users: string[];
        };
        Cleared: {
            /** Format: int64 */
            cleared: number;
        };
        ClearRequest: {
            /**
             * @description forget users last seen longer ago than this
             * @example 5m
             */
            older_than: string | number;
        };
        Cohort: {
            /** @description whether that period has begun: if not, nobody can have come yet */
            begun: boolean[];
            /** @description whether that period is over */
            complete: boolean[];
            /** @description how many were retained 0, 1, … periods later */
            retained: number[];
            /** Format: int64 */
            size: number;
            /**
             * Format: date
             * @example 2026-02-03
             */
            start: string;
        };
        Conflict: {
            app: string;
            device: string;
            id: string;
            /**
             * Format: date-time
             * @example 2026-02-03T04:05:06.789Z
             */
            login_at: string;
            /**
             * Format: date-time
             * @example 2026-02-03T04:05:06.789Z
             */
            seen_at: string;
        };
        Count: {
            /** Format: int64 */
            count: number;
            /**
             * Format: int64
             * @description absent for window=all
             */
            window_seconds?: number;
        };
        DeliveryPage: {
            items: components["schemas"]["DeliveryRecord"][];
            /** Format: int64 */
            total: number;
        };
        DeliveryRecord: {
            /**
             * Format: date-time
             * @example 2026-02-03T04:05:06.789Z
             */
            at: string;
            /**
             * Format: int64
             * @description from 1
             */
            attempt: number;
            /** Format: int64 */
            duration_ms: number;
            error?: string;
            /**
             * Format: int64
             * @description how many it holds
             */
            events: number;
            /** @description its webhook-id */
            message: string;
            replay?: string;
            /** @description failed is tried again; refused: the address is not allowed; given_up: not tried again */
            result: string;
            /**
             * Format: int64
             * @description of HTTP; absent if there was no answer
             */
            status?: number;
            type: string;
        };
        Ended: {
            /** Format: int64 */
            ended: number;
            /** @description the first 100 */
            sessions: string[];
        };
        EndedByName: {
            /** @enum {string} */
            cause: "logout" | "kicked" | "replaced" | "expired" | "lifetime" | "banned" | "erased";
            id: string;
        };
        Event: {
            /** @description who did it */
            actor?: string;
            /**
             * Format: date-time
             * @description when it happened
             * @example 2026-02-03T04:05:06.789Z
             */
            at: string;
            /** @enum {string} */
            cause?: "logout" | "kicked" | "replaced" | "expired" | "lifetime" | "banned" | "erased";
            /** @description opaque and unique; the same when the event is told again */
            id: string;
            reason?: string;
            session?: string;
            type: string;
            /** @description absent if the event is of nobody, or the user was erased */
            user?: string;
        };
        EventPage: {
            items: components["schemas"]["Event"][];
            /** @description the place to give as after for what follows */
            next: string;
            /** @description events since the place that was given are missing: they are no longer kept, or the store is another. next is now */
            reset?: boolean;
        };
        EventTicket: {
            /**
             * Format: date-time
             * @description 30 s from now; a stream that has begun goes on
             * @example 2026-02-03T04:05:06.789Z
             */
            expires_at: string;
            /** @description secret; for GET /v1/events?ticket= */
            ticket: string;
        };
        EventTicketRequest: {
            /**
             * @description only events with this cause
             * @enum {string}
             */
            cause?: "logout" | "kicked" | "replaced" | "expired" | "lifetime" | "banned" | "erased";
            /** @description the types to show; all unless said */
            types?: string[];
            /** @description only events of this user */
            user?: string;
        };
        Figures: {
            /** Format: int64 */
            dau: number;
            /** Format: double */
            dau_mau: number | null;
            /** Format: double */
            dau_wau: number | null;
            /**
             * Format: date
             * @example 2026-02-03
             */
            day: string;
            /** Format: int64 */
            mau: number;
            /** @description counted before marks of days in the archive changed; the archive, which it takes to count anew, does not answer */
            stale?: boolean;
            /** @description the day has not begun */
            to_come?: boolean;
            /** Format: int64 */
            wau: number;
            /** Format: double */
            wau_mau: number | null;
        };
        Friend: {
            /**
             * Format: date-time
             * @example 2026-02-03T04:05:06.789Z
             */
            last_seen?: string;
            online: boolean;
            /**
             * Format: date-time
             * @example 2026-02-03T04:05:06.789Z
             */
            since: string;
            user: string;
        };
        FriendsRequest: {
            friends: components["schemas"]["NewFriend"][];
        };
        Health: {
            /**
             * @example ok
             * @enum {string}
             */
            status: "ok" | "ready";
        };
        ItemsArchiveRunRecord: {
            items: components["schemas"]["ArchiveRunRecord"][];
        };
        ItemsKeyRecord: {
            items: components["schemas"]["KeyRecord"][];
        };
        ItemsKindUse: {
            items: components["schemas"]["KindUse"][];
        };
        ItemsStatus: {
            items: components["schemas"]["Status"][];
        };
        ItemsVisitName: {
            items: components["schemas"]["VisitName"][];
        };
        ItemsWebhookRecord: {
            items: components["schemas"]["WebhookRecord"][];
        };
        KeyRecord: {
            /**
             * Format: date-time
             * @example 2026-02-03T04:05:06.789Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @example 2026-02-03T04:05:06.789Z
             */
            expires_at?: string;
            id: string;
            name: string;
            /** @enum {string} */
            role: "reader" | "writer" | "admin";
        };
        KeyRequest: {
            /** @description what it is for, ≤ 128 bytes */
            name?: string;
            /** @enum {string} */
            role: "reader" | "writer" | "admin";
            /**
             * @description how long it works, up to 10 years; for ever unless said
             * @example 5m
             */
            ttl?: string | number;
        };
        KickRequest: {
            /** @description every session */
            all?: boolean;
            /**
             * @description with user or filter: keep the users out for so long, up to 10 years
             * @example 5m
             */
            ban?: string | number;
            /** @description with user: only those of this device class */
            device?: string;
            /** @description only count */
            dry_run?: boolean;
            /** @description with user: all but this session */
            except?: string;
            /** @description all sessions that meet these conditions */
            filter?: {
                app?: string;
                /** @description all of these attributes; attr.<key> says the same */
                attrs?: {
                    [key: string]: string;
                };
                device?: string;
                /**
                 * @description an address or a CIDR range
                 * @example 10.0.0.0/8
                 */
                ip?: string;
                kind?: string;
                /**
                 * Format: date-time
                 * @description login_at at or after
                 * @example 2026-02-03T04:05:06.789Z
                 */
                login_after?: string;
                /**
                 * Format: date-time
                 * @description login_at before
                 * @example 2026-02-03T04:05:06.789Z
                 */
                login_before?: string;
                /** @description a prefix of the name, case-folded */
                name?: string;
                /**
                 * @description seen_at at most so long ago
                 * @example 5m
                 */
                seen_within?: string | number;
                user?: string;
                /** @description any of these users */
                users?: string[];
            } & {
                [key: string]: string;
            };
            /** @description shown to the client, ≤ 256 bytes */
            reason?: string;
            /** @description this session */
            session?: string;
            /** @description this user's sessions */
            user?: string;
        };
        KindUse: {
            /**
             * Format: int64
             * @description with marks of it
             */
            days: number;
            kind: string;
            /**
             * Format: int64
             * @description live ones
             */
            sessions: number;
            /**
             * Format: int64
             * @description whose own kind it was made
             */
            users: number;
        };
        Lifecycle: {
            /**
             * Format: date
             * @description the first day asked for
             * @example 2026-02-03
             */
            from: string;
            items: components["schemas"]["LifecycleRow"][];
            /** @enum {string} */
            period: "day" | "week" | "month";
            /**
             * Format: date
             * @description the last day asked for
             * @example 2026-02-03
             */
            to: string;
        };
        LifecycleRow: {
            /** @description whether the period is over */
            complete: boolean;
            /**
             * Format: int64
             * @description active in the period just before, not in this one
             */
            dormant: number;
            /**
             * Format: int64
             * @description first ever active
             */
            new: number;
            /**
             * Format: int64
             * @description active some time before, but not in the period just before
             */
            resurrecting: number;
            /**
             * Format: int64
             * @description active in the period just before too
             */
            returning: number;
            /**
             * Format: date
             * @example 2026-02-03
             */
            start: string;
            /** @description the period has not begun */
            to_come?: boolean;
        };
        LoggedIn: {
            /** @description secret: 32 bytes in hex, the key of the session's UDP beats */
            beat_key: string;
            /** @description sessions that made room */
            ended: components["schemas"]["EndedByName"][];
            session: components["schemas"]["Session"];
            /** @description secret; shown once */
            token: string;
        };
        LoginRequest: {
            /** @description ≤ 64 bytes */
            app?: string;
            /** @description up to 16; keys ≤ 32, values ≤ 256 bytes, 2 KiB in all */
            attrs?: {
                [key: string]: string;
            };
            /** @description the class of device: web, ios, android, …; ≤ 32 bytes */
            device?: string;
            /** @description one physical device: its earlier session is replaced; ≤ 128 bytes */
            device_id?: string;
            /** @description ids of sessions of this user that end (replaced) if the login succeeds, such as some of the conflicts of a login that was refused with session_limit; others are ignored */
            evict?: string[];
            /** @description the end user's address, as the application sees it */
            ip?: string;
            /** @description the user's own unless said; ≤ 32 of a-z 0-9 _ - */
            kind?: string;
            /** @description the user's own unless said; ≤ 128 bytes */
            name?: string;
            /** @description 1–128 bytes of UTF-8, no control characters */
            user: string;
            /** @description ≤ 1024 bytes */
            user_agent?: string;
        };
        Mark: {
            /**
             * Format: date-time
             * @description an instant, for the civil day it lies in
             * @example 2026-02-03T04:05:06.789Z
             */
            at?: string;
            /**
             * Format: date
             * @description the day; today unless day or at says otherwise
             * @example 2026-02-03
             */
            day?: string;
            /** @description the user's own unless said */
            kind?: string;
            user: string;
        };
        Marked: {
            /** Format: int64 */
            already: number;
            /** Format: int64 */
            marked: number;
        };
        MarksRequest: {
            marks: components["schemas"]["Mark"][];
        };
        MemoryPart: {
            /** Format: int64 */
            bytes: number;
            name: string;
        };
        NewBan: {
            /** @description who set it */
            actor?: string;
            /**
             * Format: date-time
             * @example 2026-02-03T04:05:06.789Z
             */
            at: string;
            /**
             * Format: int64
             * @description sessions ended by it
             */
            ended: number;
            reason?: string;
            /**
             * Format: date-time
             * @example 2026-02-03T04:05:06.789Z
             */
            until: string;
            /** @description absent once the user was erased */
            user?: string;
        };
        NewFriend: {
            /**
             * Format: date-time
             * @description now unless said, or as it stands
             * @example 2026-02-03T04:05:06.789Z
             */
            since?: string;
            user: string;
        };
        NewKey: {
            /** @description secret; keys the UDP beats of a gateway; not for readers */
            beat_key?: string;
            /**
             * Format: date-time
             * @example 2026-02-03T04:05:06.789Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @example 2026-02-03T04:05:06.789Z
             */
            expires_at?: string;
            id: string;
            /** @description secret; shown once */
            key: string;
            name: string;
            /** @enum {string} */
            role: "reader" | "writer" | "admin";
        };
        PageBanRecord: {
            items: components["schemas"]["BanRecord"][];
            /** @description cursor to what follows; absent on the last page */
            next?: string;
            /**
             * Format: int64
             * @description of the whole list
             */
            total: number;
            /** @description there are more than the filter may look at */
            total_is_lower_bound?: boolean;
        };
        PageFriend: {
            items: components["schemas"]["Friend"][];
            /** @description cursor to what follows; absent on the last page */
            next?: string;
            /**
             * Format: int64
             * @description of the whole list
             */
            total: number;
            /** @description there are more than the filter may look at */
            total_is_lower_bound?: boolean;
        };
        PageSeen: {
            items: components["schemas"]["Seen"][];
            /** @description cursor to what follows; absent on the last page */
            next?: string;
            /**
             * Format: int64
             * @description of the whole list
             */
            total: number;
            /** @description there are more than the filter may look at */
            total_is_lower_bound?: boolean;
        };
        PageSession: {
            items: components["schemas"]["Session"][];
            /** @description cursor to what follows; absent on the last page */
            next?: string;
            /**
             * Format: int64
             * @description of the whole list
             */
            total: number;
            /** @description there are more than the filter may look at */
            total_is_lower_bound?: boolean;
        };
        Problem: {
            /**
             * @description how the session ended
             * @enum {string}
             */
            cause?: "logout" | "kicked" | "replaced" | "expired" | "lifetime" | "banned" | "erased";
            /**
             * @description stable; programs may rely on it
             * @enum {string}
             */
            code: "invalid_argument" | "unauthenticated" | "session_ended" | "forbidden" | "user_banned" | "not_found" | "conflict" | "session_limit" | "too_large" | "rate_limited" | "unavailable" | "storage_full" | "internal";
            /** @description with session_limit: the sessions in the way of the login, newest first, up to 100 */
            conflicts?: components["schemas"]["Conflict"][];
            /** @description what went wrong this time, for the person who has to act on it */
            detail: string;
            /**
             * Format: int64
             * @description how many sessions a kick had ended before it was cut short
             */
            ended?: number;
            /** @description the field at fault */
            field?: string;
            /** @description the reason given for the end or the ban */
            reason?: string;
            /**
             * Format: int64
             * @description the HTTP status
             */
            status: number;
            /** @description what the code means */
            title: string;
            /**
             * @description urn:rollcall:error: and the code
             * @example urn:rollcall:error:not_found
             */
            type: string;
        };
        ReplayRecord: {
            /**
             * Format: date-time
             * @example 2026-02-03T04:05:06.789Z
             */
            asked_at: string;
            /**
             * Format: date-time
             * @example 2026-02-03T04:05:06.789Z
             */
            from: string;
            /** @description its messages have it as replay; while it is under way the webhook shows it */
            id: string;
            /**
             * Format: date-time
             * @example 2026-02-03T04:05:06.789Z
             */
            to: string;
        };
        ReplayRequest: {
            /**
             * Format: date-time
             * @description events at or after it
             * @example 2026-02-03T04:05:06.789Z
             */
            from: string;
            /**
             * Format: date-time
             * @description events before it
             * @example 2026-02-03T04:05:06.789Z
             */
            to: string;
        };
        Retention: {
            /** @enum {string} */
            cohort: "first" | "recurring";
            cohorts: components["schemas"]["Cohort"][];
            /**
             * Format: date
             * @description the first day asked for
             * @example 2026-02-03
             */
            from: string;
            /** @description mean share retained by distance, over complete periods; null if there is none */
            mean: (number | null)[];
            /** @enum {string} */
            measure: "on" | "on_or_after";
            /** @enum {string} */
            period: "day" | "week" | "month";
            /**
             * Format: date
             * @description the last day asked for
             * @example 2026-02-03
             */
            to: string;
        };
        Rotated: {
            session: components["schemas"]["Session"];
            token: string;
        };
        Seen: {
            /**
             * Format: date-time
             * @example 2026-02-03T04:05:06.789Z
             */
            last_seen: string;
            user: string;
        };
        Series: {
            /**
             * Format: date
             * @description the first day asked for
             * @example 2026-02-03
             */
            from: string;
            items: components["schemas"]["Figures"][];
            /**
             * Format: int64
             * @description 28 or 30; absent for the calendar month
             */
            mau_days?: number;
            /**
             * @description month for the calendar month to date
             * @enum {string}
             */
            mau_span?: "month";
            /**
             * Format: date
             * @description the last day asked for
             * @example 2026-02-03
             */
            to: string;
            /** Format: int64 */
            wau_days: number;
        };
        Session: {
            app: string;
            attrs: {
                [key: string]: string;
            };
            /** @enum {string} */
            cause?: "logout" | "kicked" | "replaced" | "expired" | "lifetime" | "banned" | "erased";
            device: string;
            /**
             * Format: date-time
             * @example 2026-02-03T04:05:06.789Z
             */
            ended_at?: string;
            /**
             * Format: date-time
             * @description its absolute end
             * @example 2026-02-03T04:05:06.789Z
             */
            ends_at?: string;
            /**
             * Format: date-time
             * @description when idleness ends it
             * @example 2026-02-03T04:05:06.789Z
             */
            expires_at: string;
            /** @description public, sortable, not secret */
            id: string;
            /** @description empty if the login did not give one */
            ip: string;
            kind: string;
            /**
             * Format: date-time
             * @example 2026-02-03T04:05:06.789Z
             */
            login_at: string;
            name: string;
            reason?: string;
            /**
             * Format: date-time
             * @example 2026-02-03T04:05:06.789Z
             */
            seen_at: string;
            user: string;
            user_agent: string;
        };
        SessionPatch: {
            /** @description ≤ 64 bytes */
            app?: string;
            /** @description replaces all */
            attrs?: {
                [key: string]: string;
            };
            /** @description ≤ 128 bytes */
            name?: string;
        };
        Stats: {
            /** Format: int64 */
            bans: number;
            /** Format: int64 */
            disk_bytes: number;
            /**
             * @description local or redis
             * @enum {string}
             */
            engine: "local" | "redis";
            /**
             * Format: int64
             * @description directed edges
             */
            friends: number;
            /**
             * Format: int64
             * @description with a last-seen time
             */
            known: number;
            memory: components["schemas"]["MemoryPart"][];
            /** Format: int64 */
            memory_bytes: number;
            /**
             * Format: date-time
             * @description the time that decides
             * @example 2026-02-03T04:05:06.789Z
             */
            now: string;
            /**
             * Format: int64
             * @description recorded
             */
            outages: number;
            /** Format: int64 */
            partitions: number;
            /** @description why writes are refused; absent while they are not */
            refusing?: string;
            /**
             * Format: int64
             * @description live
             */
            sessions: number;
            timezone: string;
            /**
             * Format: date
             * @example 2026-02-03
             */
            today: string;
            /**
             * Format: int64
             * @description known by id
             */
            users: number;
            version: string;
            /**
             * Format: int64
             * @description that visitors are counted of
             */
            visit_names: number;
        };
        Status: {
            /**
             * Format: int64
             * @description how long ago that is
             */
            age_seconds?: number;
            /**
             * Format: date-time
             * @example 2026-02-03T04:05:06.789Z
             */
            last_seen?: string;
            online: boolean;
            /** Format: int64 */
            sessions: number;
            user: string;
        };
        StatusRequest: {
            users: string[];
        };
        Stickiness: {
            /**
             * Format: date
             * @description the first day asked for
             * @example 2026-02-03
             */
            from: string;
            /**
             * Format: date
             * @description the last day asked for
             * @example 2026-02-03
             */
            to: string;
            /** Format: int64 */
            total: number;
            /** @description number of active days to number of users; without the zeros */
            users_by_active_days: {
                [key: string]: number;
            };
        };
        Streak: {
            /** @description it ends today unless the user comes */
            at_risk: boolean;
            /**
             * Format: int64
             * @description ending today, or yesterday while today is open
             */
            current: number;
            /** Format: int64 */
            longest: number;
        };
        StreakList: {
            /**
             * Format: date
             * @description the first day asked for
             * @example 2026-02-03
             */
            from: string;
            items: components["schemas"]["UserStreak"][];
            /**
             * Format: date
             * @description the last day asked for
             * @example 2026-02-03
             */
            to: string;
        };
        Summary: {
            ban?: components["schemas"]["BanRecord"];
            /** Format: int64 */
            friends: number;
            invisible: boolean;
            kind: string;
            /**
             * Format: date-time
             * @example 2026-02-03T04:05:06.789Z
             */
            last_seen?: string;
            name: string;
            online: boolean;
            /**
             * Format: int64
             * @description live ones
             */
            sessions: number;
            streak?: components["schemas"]["Streak"];
            /** @description streak is absent, as the archive has days of the user and does not answer */
            streak_unavailable?: boolean;
            user: string;
        };
        Touched: {
            session: components["schemas"]["Session"];
            /** @enum {string} */
            state: "live";
        };
        TouchedAll: {
            results: components["schemas"]["TouchResult"][];
        };
        TouchRequest: {
            /** @description with an API key: many sessions by id */
            sessions?: string[];
            /** @description an end user's token, if it does not come as Authorization: Bearer */
            token?: string;
            /** @description with an API key: many tokens */
            tokens?: string[];
        };
        TouchResult: {
            /**
             * @description how it ended
             * @enum {string}
             */
            cause?: "logout" | "kicked" | "replaced" | "expired" | "lifetime" | "banned" | "erased";
            /** @enum {string} */
            state: "live" | "ended" | "unknown";
        };
        Unmarked: {
            /** Format: int64 */
            unmarked: number;
        };
        UserRecord: {
            invisible: boolean;
            kind: string;
            name: string;
            user: string;
        };
        UserRequest: {
            /** @description looks offline to all but administrators */
            invisible?: boolean;
            /** @description ≤ 32 of a-z 0-9 _ -; at most 64 kinds in all */
            kind?: string;
            /** @description ≤ 128 bytes */
            name?: string;
        };
        UserStreak: {
            at_risk: boolean;
            /** Format: int64 */
            current: number;
            /** Format: int64 */
            longest: number;
            user: string;
        };
        VerifyRequest: {
            /** @description the session's id */
            session?: string;
        };
        VisitCount: {
            /**
             * Format: date-time
             * @description when the hour or day begins, or the range in it
             * @example 2026-02-03T04:05:06.789Z
             */
            start: string;
            /** Format: int64 */
            visitors: number;
        };
        VisitName: {
            /**
             * Format: date-time
             * @description when the newest hour with visitors began
             * @example 2026-02-03T04:05:06.789Z
             */
            last_visit: string;
            name: string;
        };
        Visitors: {
            /** @enum {string} */
            by: "hour" | "day";
            items: components["schemas"]["VisitCount"][];
            name: string;
            /**
             * Format: double
             * @description of each estimate, relative to it
             */
            standard_error: number;
            /**
             * Format: int64
             * @description different visitors in the whole range
             */
            total: number;
        };
        VisitsRequest: {
            /** @description of what they visited, such as a site or a page; up to 64 bytes */
            name?: string;
            /** @description ids of 1 to 128 bytes, which need not be those of users */
            visitors: string[];
        };
        WebhookPatch: {
            batch?: boolean;
            description?: string;
            /** @description it goes on where it stopped */
            enabled?: boolean;
            invisible?: boolean;
            /** @description an empty list for all but user.online and user.offline */
            types?: string[];
            url?: string;
        };
        WebhookRecord: {
            /** @description events come in batches */
            batch: boolean;
            /**
             * @description only events with this cause
             * @enum {string}
             */
            cause?: "logout" | "kicked" | "replaced" | "expired" | "lifetime" | "banned" | "erased";
            /**
             * Format: date-time
             * @example 2026-02-03T04:05:06.789Z
             */
            created_at: string;
            description?: string;
            /** @description why nothing is delivered: request, gone (the receiver answered 410), failing (nothing but failures for five days) */
            disabled?: string;
            /**
             * Format: date-time
             * @example 2026-02-03T04:05:06.789Z
             */
            disabled_at?: string;
            enabled: boolean;
            id: string;
            /** @description it is told of invisible users too */
            invisible: boolean;
            replay?: components["schemas"]["ReplayRecord"];
            /**
             * Format: date-time
             * @description when it got its latest secret, if not when it was made
             * @example 2026-02-03T04:05:06.789Z
             */
            rotated_at?: string;
            /** @description the types it is told of; absent for all but user.online and user.offline */
            types?: string[] | null;
            url: string;
            /** @description only events of this user */
            user?: string;
        };
        WebhookRequest: {
            batch?: boolean;
            /** @enum {string} */
            cause?: "logout" | "kicked" | "replaced" | "expired" | "lifetime" | "banned" | "erased";
            description?: string;
            invisible?: boolean;
            /** @description the types to be told of; all but user.online and user.offline unless said */
            types?: string[] | null;
            /** @description https:// or http:// */
            url: string;
            user?: string;
        };
        WebhookWithSecret: {
            /** @description events come in batches */
            batch: boolean;
            /**
             * @description only events with this cause
             * @enum {string}
             */
            cause?: "logout" | "kicked" | "replaced" | "expired" | "lifetime" | "banned" | "erased";
            /**
             * Format: date-time
             * @example 2026-02-03T04:05:06.789Z
             */
            created_at: string;
            description?: string;
            /** @description why nothing is delivered: request, gone (the receiver answered 410), failing (nothing but failures for five days) */
            disabled?: string;
            /**
             * Format: date-time
             * @example 2026-02-03T04:05:06.789Z
             */
            disabled_at?: string;
            enabled: boolean;
            id: string;
            /** @description it is told of invisible users too */
            invisible: boolean;
            replay?: components["schemas"]["ReplayRecord"];
            /**
             * Format: date-time
             * @description when it got its latest secret, if not when it was made
             * @example 2026-02-03T04:05:06.789Z
             */
            rotated_at?: string;
            /** @description checks the signatures; shown once */
            secret: string;
            /** @description the types it is told of; absent for all but user.online and user.offline */
            types?: string[] | null;
            url: string;
            /** @description only events of this user */
            user?: string;
        };
    };
    responses: {
        /** @description A rule is broken: `field` names the part of the request (`invalid_argument`) */
        BadRequest: {
            headers: {
                /** @description names the request in the server's log */
                "X-Request-Id"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "type": "urn:rollcall:error:invalid_argument",
                 *       "title": "The request breaks a rule",
                 *       "status": 400,
                 *       "detail": "The request breaks a rule",
                 *       "code": "invalid_argument"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The request contradicts what is stored (`conflict`), or no more sessions are allowed (`session_limit`) */
        Conflict: {
            headers: {
                /** @description names the request in the server's log */
                "X-Request-Id"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "type": "urn:rollcall:error:conflict",
                 *       "title": "The request contradicts what is stored",
                 *       "status": 409,
                 *       "detail": "The request contradicts what is stored",
                 *       "code": "conflict"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description A fault of the server (`internal`), or another error */
        Fault: {
            headers: {
                /** @description names the request in the server's log */
                "X-Request-Id"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "type": "urn:rollcall:error:internal",
                 *       "title": "A fault of the server",
                 *       "status": 500,
                 *       "detail": "A fault of the server",
                 *       "code": "internal"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The caller may not do this (`forbidden`), or the user is banned (`user_banned`) */
        Forbidden: {
            headers: {
                /** @description names the request in the server's log */
                "X-Request-Id"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "type": "urn:rollcall:error:forbidden",
                 *       "title": "Not allowed",
                 *       "status": 403,
                 *       "detail": "Not allowed",
                 *       "code": "forbidden"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description There is no such thing (`not_found`) */
        NotFound: {
            headers: {
                /** @description names the request in the server's log */
                "X-Request-Id"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "type": "urn:rollcall:error:not_found",
                 *       "title": "No such thing",
                 *       "status": 404,
                 *       "detail": "No such thing",
                 *       "code": "not_found"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The body is too large (`too_large`) */
        TooLarge: {
            headers: {
                /** @description names the request in the server's log */
                "X-Request-Id"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "type": "urn:rollcall:error:too_large",
                 *       "title": "The request is too large",
                 *       "status": 413,
                 *       "detail": "The request is too large",
                 *       "code": "too_large"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Too many requests (`rate_limited`) */
        TooManyRequests: {
            headers: {
                /** @description seconds to wait before the next try */
                "Retry-After"?: number;
                /** @description names the request in the server's log */
                "X-Request-Id"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "type": "urn:rollcall:error:rate_limited",
                 *       "title": "Too many requests",
                 *       "status": 429,
                 *       "detail": "Too many requests",
                 *       "code": "rate_limited"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description No credential, or one that is not known (`unauthenticated`), or the session has ended (`session_ended`, with `cause`) */
        Unauthorized: {
            headers: {
                /** @description how to authenticate */
                "WWW-Authenticate"?: string;
                /** @description names the request in the server's log */
                "X-Request-Id"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "type": "urn:rollcall:error:unauthenticated",
                 *       "title": "No credential, or one that is not known",
                 *       "status": 401,
                 *       "detail": "No credential, or one that is not known",
                 *       "code": "unauthenticated"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The engine cannot answer now (`unavailable`), or there is no room to write (`storage_full`) */
        Unavailable: {
            headers: {
                /** @description seconds to wait before the next try */
                "Retry-After"?: number;
                /** @description names the request in the server's log */
                "X-Request-Id"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "type": "urn:rollcall:error:unavailable",
                 *       "title": "Not available now",
                 *       "status": 503,
                 *       "detail": "Not available now",
                 *       "code": "unavailable"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The body has another type than the route takes, or is packed (`invalid_argument`) */
        UnsupportedMediaType: {
            headers: {
                /** @description names the request in the server's log */
                "X-Request-Id"?: string;
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
