// Package browser reads streams with a real Chromium: EventSource and fetch of pages, as they are. It
// looks at the console too, as console.mjs says; what it has seen is in the artifacts.
//
//	cases.mjs ──drives──▶ Chromium ──▶ (cutter) ──▶ spool ──▶ fakellm
//	    └── asks the Go test to cut the connections, and the two origins for their pages
//
// It needs Chromium in /usr/bin, and Node; `make test-browser` runs it.
package browser
