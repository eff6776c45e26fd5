package httpapi

import (
	"slices"

	"github.com/rollcall/rollcall"
)

// Access is what a route asks of its callers.
type Access string

// The kinds of access. The last three are the roles of API keys, each of which
// may do what the one before may.
const (
	AccessPublic Access = "public" // anyone
	AccessUser   Access = "user"   // an end user, by the token of a session
	// AccessConsole is for pages of the console, which sign in there.
	AccessConsole Access = "console"
	AccessReader  Access = Access(rollcall.RoleReader)
	AccessWriter  Access = Access(rollcall.RoleWriter)
	AccessAdmin   Access = Access(rollcall.RoleAdmin)
)

// Route is one operation of the API and who may call it.
type Route struct {
	Method, Path string

	Needs Access
	// Keys is the role whose API keys a route for end users takes as well; ""
	// for none.
	Keys rollcall.Role
	// AdminWhen says which requests need the role admin beyond Needs; "" for
	// none.
	AdminWhen string

	Live bool // the end user's session must be live, or the request ends here
	// Pages is for routes that end users' own pages call: from cors_origins too,
	// and within the allowance of their session.
	Pages    bool
	Tickets  bool // takes a ticket in place of an API key
	Verifies bool // answers reverse proxies: see tellProxy
	Batch    bool // takes bodies of up to 8 MiB instead of 1 MiB
}

// Pattern returns the route as http.ServeMux writes it.
func (r Route) Pattern() string { return r.Method + " " + r.Path }

// The largest bodies, in bytes.
const (
	maxBody      = 1 << 20
	maxBatchBody = 8 << 20
)

func (r Route) maxBody() int64 {
	if r.Batch {
		return maxBatchBody
	}
	return maxBody
}

// Routes returns the one table that says who may call what. A route that does
// not stand in it is served to nobody.
func Routes() []Route {
	return slices.Concat(mainRoutes(), serverRoutes(), webhookRoutes())
}

// mainRoutes are those of users, sessions and days.
func mainRoutes() []Route {
	return []Route{
		{Method: "POST", Path: "/v1/sessions", Needs: AccessWriter},
		{Method: "GET", Path: "/v1/sessions", Needs: AccessReader},
		{Method: "POST", Path: "/v1/sessions/query", Needs: AccessReader},
		{Method: "GET", Path: "/v1/sessions/counts", Needs: AccessReader},
		{Method: "GET", Path: "/v1/sessions/{id}", Needs: AccessReader},
		{Method: "PATCH", Path: "/v1/sessions/{id}", Needs: AccessWriter},
		{Method: "DELETE", Path: "/v1/sessions/{id}", Needs: AccessWriter},
		{Method: "POST", Path: "/v1/sessions/{id}/rotate", Needs: AccessWriter},
		{Method: "POST", Path: "/v1/kicks", Needs: AccessWriter, AdminWhen: "the body has filter, all or ban"},

		{Method: "POST", Path: "/v1/touch", Needs: AccessUser, Keys: rollcall.RoleWriter, Pages: true, Batch: true},
		{Method: "GET", Path: "/v1/verify", Needs: AccessUser, Verifies: true},
		{Method: "POST", Path: "/v1/verify", Needs: AccessUser, Keys: rollcall.RoleReader, Verifies: true},
		{Method: "GET", Path: "/v1/me/sessions", Needs: AccessUser, Live: true, Pages: true},
		{Method: "DELETE", Path: "/v1/me/sessions", Needs: AccessUser, Live: true, Pages: true},
		{Method: "DELETE", Path: "/v1/me/sessions/{id}", Needs: AccessUser, Live: true, Pages: true},
		{Method: "GET", Path: "/v1/me/friends/online", Needs: AccessUser, Live: true, Pages: true},

		{Method: "GET", Path: "/v1/me/friends/events", Needs: AccessUser, Live: true, Pages: true},
		{Method: "GET", Path: "/v1/events", Needs: AccessReader, Pages: true, Tickets: true},
		{Method: "POST", Path: "/v1/events/tickets", Needs: AccessReader},

		{Method: "POST", Path: "/v1/beats", Needs: AccessWriter, Batch: true},
		{Method: "GET", Path: "/v1/online", Needs: AccessReader},
		{Method: "GET", Path: "/v1/online/count", Needs: AccessReader},
		{Method: "GET", Path: "/v1/online/history", Needs: AccessReader},
		{Method: "GET", Path: "/v1/online/badge", Needs: AccessPublic},
		{Method: "POST", Path: "/v1/online/status", Needs: AccessReader, Batch: true},
		{Method: "POST", Path: "/v1/online/clear", Needs: AccessAdmin},

		{Method: "GET", Path: "/v1/users/{user}", Needs: AccessReader},
		{Method: "PUT", Path: "/v1/users/{user}", Needs: AccessWriter},
		{Method: "DELETE", Path: "/v1/users/{user}", Needs: AccessAdmin},
		{Method: "GET", Path: "/v1/users/{user}/timeline", Needs: AccessReader},
		{Method: "GET", Path: "/v1/bans", Needs: AccessReader},
		{Method: "GET", Path: "/v1/bans/{user}", Needs: AccessReader},
		{Method: "PUT", Path: "/v1/bans/{user}", Needs: AccessAdmin},
		{Method: "DELETE", Path: "/v1/bans/{user}", Needs: AccessAdmin},

		{Method: "GET", Path: "/v1/users/{user}/friends", Needs: AccessReader},
		{Method: "PUT", Path: "/v1/users/{user}/friends", Needs: AccessWriter, Batch: true},
		{Method: "GET", Path: "/v1/users/{user}/friends/online", Needs: AccessReader},
		{Method: "PUT", Path: "/v1/users/{user}/friends/{friend}", Needs: AccessWriter},
		{Method: "DELETE", Path: "/v1/users/{user}/friends/{friend}", Needs: AccessWriter},

		{Method: "POST", Path: "/v1/attendance/marks", Needs: AccessWriter, AdminWhen: "import=1", Batch: true},
		{Method: "DELETE", Path: "/v1/attendance/marks", Needs: AccessWriter, AdminWhen: "import=1", Batch: true},
		{Method: "GET", Path: "/v1/attendance/users/{user}", Needs: AccessReader},
		{Method: "GET", Path: "/v1/attendance/active", Needs: AccessReader},
		{Method: "GET", Path: "/v1/attendance/series", Needs: AccessReader},
		{Method: "GET", Path: "/v1/attendance/retention", Needs: AccessReader},
		{Method: "GET", Path: "/v1/attendance/lifecycle", Needs: AccessReader},
		{Method: "GET", Path: "/v1/attendance/stickiness", Needs: AccessReader},
		{Method: "GET", Path: "/v1/attendance/streaks", Needs: AccessReader},

		{Method: "POST", Path: "/v1/visits", Needs: AccessWriter, Batch: true},
		{Method: "GET", Path: "/v1/visits", Needs: AccessReader},
		{Method: "GET", Path: "/v1/visits/names", Needs: AccessAdmin},
		{Method: "DELETE", Path: "/v1/visits/names/{name}", Needs: AccessAdmin},
		{Method: "GET", Path: "/v1/kinds", Needs: AccessAdmin},
		{Method: "DELETE", Path: "/v1/kinds/{kind}", Needs: AccessAdmin},
	}
}

// serverRoutes are those of the server itself.
func serverRoutes() []Route {
	return []Route{
		{Method: "GET", Path: "/v1/keys", Needs: AccessAdmin},
		{Method: "POST", Path: "/v1/keys", Needs: AccessAdmin},
		{Method: "DELETE", Path: "/v1/keys/{id}", Needs: AccessAdmin},
		{Method: "GET", Path: "/v1/console/session", Needs: AccessConsole},
		{Method: "POST", Path: "/v1/console/session", Needs: AccessConsole},
		{Method: "DELETE", Path: "/v1/console/session", Needs: AccessConsole},
		{Method: "POST", Path: "/v1/console/links", Needs: AccessAdmin},
		{Method: "GET", Path: "/v1/archive/runs", Needs: AccessAdmin},
		{Method: "POST", Path: "/v1/archive/runs", Needs: AccessAdmin},
		{Method: "GET", Path: "/v1/audit", Needs: AccessAdmin},
		{Method: "GET", Path: "/v1/backup", Needs: AccessAdmin},
		{Method: "GET", Path: "/v1/stats", Needs: AccessReader},

		{Method: "GET", Path: "/healthz", Needs: AccessPublic},
		{Method: "GET", Path: "/readyz", Needs: AccessPublic},
		{Method: "GET", Path: "/metrics", Needs: AccessPublic},
		{Method: "GET", Path: "/openapi.json", Needs: AccessPublic},
		{Method: "GET", Path: "/openapi-3.0.json", Needs: AccessPublic},
		{Method: "GET", Path: "/docs/openapi", Needs: AccessPublic},
		{Method: "GET", Path: "/llms.txt", Needs: AccessPublic},
		{Method: "GET", Path: PresenceScriptPath, Needs: AccessPublic},
	}
}

func webhookRoutes() []Route {
	return []Route{
		{Method: "GET", Path: "/v1/webhooks", Needs: AccessAdmin},
		{Method: "POST", Path: "/v1/webhooks", Needs: AccessAdmin},
		{Method: "GET", Path: "/v1/webhooks/{id}", Needs: AccessAdmin},
		{Method: "PATCH", Path: "/v1/webhooks/{id}", Needs: AccessAdmin},
		{Method: "DELETE", Path: "/v1/webhooks/{id}", Needs: AccessAdmin},
		{Method: "POST", Path: "/v1/webhooks/{id}/test", Needs: AccessAdmin},
		{Method: "POST", Path: "/v1/webhooks/{id}/rotate", Needs: AccessAdmin},
		{Method: "POST", Path: "/v1/webhooks/{id}/replay", Needs: AccessAdmin},
		{Method: "GET", Path: "/v1/webhooks/{id}/deliveries", Needs: AccessAdmin},
	}
}
