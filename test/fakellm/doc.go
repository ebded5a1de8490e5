// Package fakellm is the scripted provider: a raw TCP server that plays any stream of bytes with any
// boundaries between reads, and every way in which a provider fails. It parses requests as HTTP/1.1
// but writes its answers itself, so that it can break the framing, close early or reset.
//
//	request ──▶ a script of its route? ──▶ /__requests, /load/… ──▶ a recording? ──▶ the default answer
//	                                  └──────────── all of them are lists of Op ────────────┘
//
// It counts connections and physical requests, so a test can say how often something was bought, and
// it notices when its peer closes, so a test can say that the provider was let go. Nothing in it
// depends on the code under test.
package fakellm
