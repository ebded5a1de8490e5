// Package console is what a person sees of the buffer: its runs, one of them as it is answered, and the
// last hour. Pages are made by the server and work without scripts; the scripts make them move.
//
// It shows what a Gate lets its viewer see and changes nothing but by Cancel and Ack: looking at a run
// is no reader of it. All that comes from a run, a caller or a provider is text, wherever it stands.
//
//	Gate.See ──▶ Viewer ──▶ page of a template        the whole, or with an ETag the part that moves
//	                  └───▶ live: tail.Cursor ──▶ provider.Pieces ──▶ EventSource
//	Record ◀── every ten seconds ── the metrics
package console
