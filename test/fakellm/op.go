package fakellm

import "time"

// Op is one step of an answer. The functions of this file make them, Parse reads them.
type Op struct {
	Kind    string
	Status  int                 // json, head
	Headers map[string][]string // json, head; names are sent as they are written
	Framing string              // head
	Data    []byte              // json: the body; data, repeat, cut: what is written
	Wait    time.Duration       // sleep, hang: how long; repeat: before each write; cut: between two writes
	Count   int                 // repeat: how often
	Size    int                 // cut: bytes in one write

	run func(*player) error // a step that only Go can express
}

// The kinds of Op that a script can name.
const (
	opJSON   = "json"     // a complete response with Content-Length; the connection can be used again
	opHead   = "head"     // status line and headers
	opData   = "data"     // one write; before any head, or with framing raw, exactly these bytes
	opBase64 = "data_b64" // the same, written in base64
	opSleep  = "sleep"
	opRepeat = "repeat"
	opCut    = "cut"  // one write for each Size bytes
	opEnd    = "end"  // the terminator of a chunked body, then close
	opDone   = "done" // the same without the close: the connection can be used again
	opFin    = "fin"  // close without a terminator
	opRST    = "rst"  // reset the connection
	opHang   = "hang" // send nothing, then close; without a time, until the peer leaves
	opGo     = "go"   // run
)

// The framings of a head.
const (
	framingChunked = "chunked"
	framingClose   = "close"  // the body ends with the connection
	framingLength  = "length" // Content-Length: the header where it is given, else what the script goes on to write
	framingRaw     = "raw"    // no header is added, data is written as it is
)

// JSON is a complete response with a length.
func JSON(status int, body string) Op {
	return Op{Kind: opJSON, Status: status, Data: []byte(body)}
}

// Head is status 200 with a content type and a chunked body.
func Head(contentType string) Op {
	return Op{Kind: opHead, Status: 200, Framing: framingChunked, Headers: map[string][]string{"Content-Type": {contentType}}}
}

// Data writes text at once, as one chunk where the body is chunked.
func Data(text string) Op { return Op{Kind: opData, Data: []byte(text)} }

// Bytes is Data for bytes.
func Bytes(b []byte) Op { return Op{Kind: opData, Data: b} }

// Sleep waits.
func Sleep(d time.Duration) Op { return Op{Kind: opSleep, Wait: d} }

// Repeat writes text n times, each time after waiting for every.
func Repeat(n int, every time.Duration, text string) Op {
	return Op{Kind: opRepeat, Count: n, Wait: every, Data: []byte(text)}
}

// End finishes the body properly, then closes the connection, which the head has announced.
func End() Op { return Op{Kind: opEnd} }

// Done finishes the body properly; the connection can be used for another request.
func Done() Op { return Op{Kind: opDone} }

// Fin closes the connection in the middle of the body.
func Fin() Op { return Op{Kind: opFin} }

// RST resets the connection. The peer has a moment to read what was sent before.
func RST() Op { return Op{Kind: opRST} }

// Hang sends nothing for d, then closes; with 0 it waits until the peer leaves.
func Hang(d time.Duration) Op { return Op{Kind: opHang, Wait: d} }

// Gate waits until open is closed, so that a test decides when the answer goes on.
func Gate(open <-chan struct{}) Op {
	return Op{Kind: opGo, run: func(p *player) error { return p.wait(open) }}
}

// Play writes each event at once, with a pause of every between two of them.
func Play(events [][]byte, every time.Duration) []Op {
	var ops []Op
	for i, e := range events {
		if i > 0 && every > 0 {
			ops = append(ops, Sleep(every))
		}
		ops = append(ops, Bytes(e))
	}
	return ops
}

// Cut writes b in pieces of size bytes, so that no boundary between reads means anything.
func Cut(b []byte, size int) []Op {
	return []Op{{Kind: opCut, Data: b, Size: size}}
}

// Stream is a whole answer: a head with the content type, the body, and a proper end.
func Stream(contentType string, body ...Op) []Op {
	ops := append([]Op{Head(contentType)}, body...)
	return append(ops, Done())
}
