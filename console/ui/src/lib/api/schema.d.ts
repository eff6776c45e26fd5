// Made by "npm run types" of the OpenAPI document. Do not edit.
// Sum of the shapes: 492637b9ceca69e8a21a719df4f0af3120e4b99cfc4b081201c77b0c4fbd091f

export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        ActivePage: {
            from: string;
            items: string[];
            next?: string;
            to: string;
            total: number;
        };
        ArchiveRunRecord: {
            days_offloaded: number;
            error?: string;
            finished_at?: string;
            id: number;
            position?: string;
            rows_written: number;
            runner: string;
            started_at: string;
            /** @enum {string} */
            state: "running" | "completed" | "failed";
        };
        ArchiveRuns: {
            items: components["schemas"]["ArchiveRunRecord"][];
            next_at?: string;
        };
        Attended: {
            any: boolean;
            count: number;
            days: string[];
            from?: string;
            months?: string[];
            streak?: components["schemas"]["Streak"];
            streak_unavailable?: boolean;
            to?: string;
        };
        AuditPage: {
            items: components["schemas"]["AuditRecord"][];
            next?: string;
        };
        AuditRecord: {
            action: string;
            actor: string;
            at: string;
            detail?: {
                [key: string]: string;
            };
            hash: string;
            seq: number;
            target?: string;
        };
        BanRecord: {
            actor?: string;
            at: string;
            reason?: string;
            until: string;
            user?: string;
        };
        Cohort: {
            begun: boolean[];
            complete: boolean[];
            retained: number[];
            size: number;
            start: string;
        };
        ConsoleServer: {
            archive: boolean;
            /** @enum {string} */
            engine: "local" | "redis";
            timezone: string;
            version: string;
            window_seconds: number;
        };
        ConsoleSession: {
            /** @enum {string} */
            by: "link" | "key" | "proxy" | "off";
            expires_at?: string;
            idle_expires_at?: string;
            key_id?: string;
            name: string;
            /** @enum {string} */
            role: "reader" | "writer" | "admin";
            server: components["schemas"]["ConsoleServer"];
        };
        ConsoleState: {
            proxy?: boolean;
            session?: components["schemas"]["ConsoleSession"];
            signed_in: boolean;
        };
        DeliveryRecord: {
            at: string;
            attempt: number;
            duration_ms: number;
            error?: string;
            event_at?: string;
            events: number;
            message: string;
            replay?: string;
            result: string;
            status?: number;
            type: string;
        };
        Ended: {
            ended: number;
            sessions: string[];
        };
        Event: {
            actor?: string;
            at: string;
            /** @enum {string} */
            cause?: "logout" | "kicked" | "replaced" | "expired" | "lifetime" | "banned" | "erased";
            id: string;
            reason?: string;
            session?: string;
            type: string;
            user?: string;
        };
        EventPage: {
            items: components["schemas"]["Event"][];
            next: string;
            reset?: boolean;
        };
        Figures: {
            dau: number;
            dau_mau: number | null;
            dau_wau: number | null;
            day: string;
            mau: number;
            stale?: boolean;
            to_come?: boolean;
            wau: number;
            wau_mau: number | null;
        };
        Friend: {
            last_seen?: string;
            online: boolean;
            since: string;
            user: string;
        };
        KeyRecord: {
            created_at: string;
            expires_at?: string;
            id: string;
            name: string;
            /** @enum {string} */
            role: "reader" | "writer" | "admin";
        };
        KindUse: {
            days: number;
            kind: string;
            sessions: number;
            users: number;
        };
        Lifecycle: {
            from: string;
            items: components["schemas"]["LifecycleRow"][];
            /** @enum {string} */
            period: "day" | "week" | "month";
            to: string;
        };
        LifecycleRow: {
            complete: boolean;
            dormant: number;
            new: number;
            resurrecting: number;
            returning: number;
            start: string;
            to_come?: boolean;
        };
        MemoryPart: {
            bytes: number;
            name: string;
        };
        NewBan: {
            actor?: string;
            at: string;
            ended: number;
            reason?: string;
            until: string;
            user?: string;
        };
        NewKey: {
            beat_key?: string;
            created_at: string;
            expires_at?: string;
            id: string;
            key: string;
            name: string;
            /** @enum {string} */
            role: "reader" | "writer" | "admin";
        };
        Outage: {
            from: string;
            until: string;
        };
        PageBanRecord: {
            items: components["schemas"]["BanRecord"][];
            next?: string;
            total: number;
            total_is_lower_bound?: boolean;
        };
        PageFriend: {
            items: components["schemas"]["Friend"][];
            next?: string;
            total: number;
            total_is_lower_bound?: boolean;
        };
        PageSeen: {
            items: components["schemas"]["Seen"][];
            next?: string;
            total: number;
            total_is_lower_bound?: boolean;
        };
        PageSession: {
            items: components["schemas"]["Session"][];
            next?: string;
            total: number;
            total_is_lower_bound?: boolean;
        };
        ReplayRecord: {
            asked_at: string;
            from: string;
            id: string;
            to: string;
        };
        Retention: {
            /** @enum {string} */
            cohort: "first" | "recurring";
            cohorts: components["schemas"]["Cohort"][];
            from: string;
            mean: (number | null)[];
            /** @enum {string} */
            measure: "on" | "on_or_after";
            /** @enum {string} */
            period: "day" | "week" | "month";
            to: string;
        };
        Sample: {
            at: string;
            beats: number;
            ends: {
                [key: string]: number;
            };
            logins: number;
            online: number;
            online_max?: number;
            online_min?: number;
            sessions: number;
            sessions_max?: number;
            sessions_min?: number;
        };
        SampleList: {
            items: components["schemas"]["Sample"][];
            /** @enum {string} */
            step: "1m" | "1h";
        };
        Seen: {
            last_seen: string;
            user: string;
        };
        Series: {
            from: string;
            items: components["schemas"]["Figures"][];
            mau_days?: number;
            /** @enum {string} */
            mau_span?: "month";
            to: string;
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
            ended_at?: string;
            ends_at?: string;
            expires_at: string;
            id: string;
            ip: string;
            kind: string;
            login_at: string;
            name: string;
            reason?: string;
            seen_at: string;
            user: string;
            user_agent: string;
        };
        SessionCounts: {
            /** @enum {string} */
            by: "app" | "device" | "kind";
            items: components["schemas"]["ValueCount"][];
            other: number;
            partial?: boolean;
            total: number;
        };
        Stats: {
            bans: number;
            disk_bytes: number;
            /** @enum {string} */
            engine: "local" | "redis";
            friends: number;
            known: number;
            latest_outages: components["schemas"]["Outage"][];
            memory: components["schemas"]["MemoryPart"][];
            memory_bytes: number;
            now: string;
            outages: number;
            partitions: number;
            refusing?: string;
            sessions: number;
            timezone: string;
            today: string;
            users: number;
            version: string;
            visit_names: number;
        };
        Stickiness: {
            from: string;
            to: string;
            total: number;
            users_by_active_days: {
                [key: string]: number;
            };
        };
        Streak: {
            at_risk: boolean;
            current: number;
            longest: number;
        };
        StreakList: {
            from: string;
            items: components["schemas"]["UserStreak"][];
            to: string;
        };
        Summary: {
            ban?: components["schemas"]["BanRecord"];
            friends: number;
            invisible: boolean;
            kind: string;
            last_seen?: string;
            name: string;
            online: boolean;
            sessions: number;
            streak?: components["schemas"]["Streak"];
            streak_unavailable?: boolean;
            user: string;
        };
        TimelineEvent: {
            actor?: string;
            app?: string;
            at: string;
            /** @enum {string} */
            cause?: "logout" | "kicked" | "replaced" | "expired" | "lifetime" | "banned" | "erased";
            device?: string;
            id: string;
            ip?: string;
            reason?: string;
            session?: string;
            type: string;
            user?: string;
            user_agent?: string;
        };
        TimelinePage: {
            items: components["schemas"]["TimelineEvent"][];
            next?: string;
        };
        UserStreak: {
            at_risk: boolean;
            current: number;
            longest: number;
            user: string;
        };
        ValueCount: {
            sessions: number;
            value: string;
        };
        VisitName: {
            last_visit: string;
            name: string;
        };
        WebhookRecord: {
            batch: boolean;
            /** @enum {string} */
            cause?: "logout" | "kicked" | "replaced" | "expired" | "lifetime" | "banned" | "erased";
            created_at: string;
            description?: string;
            disabled?: string;
            disabled_at?: string;
            enabled: boolean;
            id: string;
            invisible: boolean;
            replay?: components["schemas"]["ReplayRecord"];
            rotated_at?: string;
            types?: string[] | null;
            url: string;
            user?: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
