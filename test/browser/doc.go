// Package browser reads streams with a real Chromium: EventSource, fetch, and the pages that are shipped,
// under React too.
//
//	cases.mjs ──drives──▶ Chromium ──▶ (cutter) ──▶ spool ──▶ fakellm
//	    └── asks the Go test to cut the connections, to stop Spool and to let answers go on
//
// It needs Chromium in /usr/bin, and Node; `make test-browser` runs it.
package browser
