// Package docs holds the pages of the documentation, in English and in Chinese. The
// pages for developers are left out: they are read in the repository, and would weigh as
// much as all others.
package docs

import "embed"

// Files are the pages as they stand in this folder, and the pictures on them. README.md lists
// the pages.
//
//go:embed README.md api.md attendance.md cli.md comparison.md concepts.md configuration.md
//go:embed console.md deploying.md engines.md events.md faq.md first-hour.md forward-auth.md
//go:embed languages.md library.md operations.md recipes.md resp.md taking-over.md
//go:embed performance.md presence.md reliability.md security.md sessions.md
//go:embed troubleshooting.md udp.md webhooks.md
//go:embed zh-CN/*.md
//go:embed growth.svg
var Files embed.FS
