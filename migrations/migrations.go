// Package migrations holds the schema of the embedded engine as numbered SQL files. A file is never
// edited after it has landed, and a change stays additive for one version, so that an old process
// can finish its runs while the new one serves.
package migrations

import "embed"

// FS holds the numbered files, for goose.
//
//go:embed *.sql
var FS embed.FS
