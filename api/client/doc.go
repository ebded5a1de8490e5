// Package client is for Go programs that call providers through Spool.
//
// Transport is an http.RoundTripper that any SDK takes through its http.Client. It gives each call a
// key, and repairs the answer where its connection is cut, so that the SDK sees one whole answer:
//
//	SDK ──▶ Transport ──POST, once──────────────▶ Spool ──▶ provider
//	  ◀── one body ── Stream ◀──the answer───────── │
//	                    ├────── ✂                   │
//	                    └──GET …/resume?from_byte=B─┘      as often as it takes
//
// A repair only reads. The call itself is sent again in one case alone: Spool, asked by the call's
// key, says that it never came. Even then its key makes the two one, should the first still arrive.
//
// Client has what a program asks about its runs: Resume, Status, Cancel, Ack, Token and List.
package client
