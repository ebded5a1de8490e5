// Package browser reads streams with a real Chromium: EventSource, fetch, the pages that are shipped, under
// React too, and our JavaScript client as pages load it. It looks at the console too, as console.mjs says;
// what it has seen is in the artifacts.
//
//	cases.mjs, client.mjs ──drive──▶ Chromium ──▶ (cutter) ──▶ spool ──▶ fakellm
//	    └── ask the Go test to cut the connections, to stop Spool and to let answers go on
//
// It needs Chromium in /usr/bin, and Node; `make test-browser` runs it.
package browser
