package provider

import (
	"bytes"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/spool-dev/spool/buffer/frame"
)

// The notes of a proven end.
const (
	noteWeak   = "proof_weak"    // the body's shape is unknown; that it ended is all there is
	noteUsage  = "usage_missing" // finished, then cut before the figures came
	notePolicy = "policy"        // the provider refused or filtered
)

// maxUnframed is how many bytes of a body in an unexpected shape are held over several chunks to be
// judged. It is small, since each chunk asks anew whether the body is whole.
const maxUnframed = 64 << 10

// Mark says what one chunk means for the run.
type Mark struct {
	Content bool // commits the run and feeds the content clock; without Finish it disarms a finish
	Finish  bool // the answer says that it is over: with the end of the body or the grace it is proof
	Final   bool // proof that nothing can take back; Finish is set too
	Failed  bool // the provider tells its own error
	Comment bool // comments, pings, empty blocks: never progress
}

// Verdict sums up what was read.
type Verdict struct {
	Proven  bool     // the provider's own proof of the end was seen
	Refused bool     // of a proven end: the answer was refused or filtered, as the note policy says
	Notes   []string // of a proven end: proof_weak, usage_missing, policy
	Failure []byte   // the error as the provider sent it: JSON, less the framing; nil where none came
	// FailureChunk is the chunk that the error came in. It also holds what the framing says of the
	// error: an SSE event's name, an AWS exception's type.
	FailureChunk []byte
	Usage        *Usage // the last figures; nil where none came
	ProviderID   string // the provider's own id of the answer
	Model        string // the model that answered, in the provider's words
	ToolStarted  bool   // a tool that the provider runs was at work
}

// Reader reads the chunks of one answer in order. It is for one goroutine.
//
// What it knows of an end is in three layers: a final proof, which stays; a finish, which later
// content takes back; and, only where nothing of the dialect was recognised, the end of the body.
type Reader struct {
	dialect Dialect
	kind    frame.Kind
	stream  bool
	event   func(r *Reader, name, data string) Mark // one event or body in the dialect

	known   bool // an event of the dialect was recognised
	strange bool // a payload came that is no event of the dialect
	final   bool
	ended   bool   // some choice has finished
	open    uint64 // choices with content and without a finish since, by index
	policy  bool
	tool    bool
	metered bool

	failure, failureChunk []byte
	usage                 Usage
	id, model             string
	named                 bool // id and model are settled: content has come

	chunk    []byte // the one that is being read
	scratch  []byte // joined data lines
	decoded  []byte // the inner event of an invoke
	unframed []byte // a body that does not come in the framing it was announced in, so far
	judged   bool   // that body was judged, or is past judging
	lined    bool   // it is one JSON value a line, and unframed is the line that is not whole yet
	whole    bool   // the body is one answer in one piece
}

// NewReader returns a Reader for an answer of dialect d in framing k. stream says whether the call
// asked for a stream.
func NewReader(d Dialect, k frame.Kind, stream bool) *Reader {
	return &Reader{dialect: d, kind: k, stream: stream, event: eventReader(d), whole: k == frame.Whole}
}

func eventReader(d Dialect) func(*Reader, string, string) Mark {
	switch d {
	case OpenAIChat:
		return readChat
	case OpenAIResponses:
		return readResponses
	case Anthropic:
		return readAnthropic
	case Gemini:
		return readGemini
	case Bedrock:
		return readConverse
	case BedrockInvoke:
		return readInvoke
	case Ollama:
		return readOllama
	}
	return readGeneric
}

// Read returns what chunk means. Chunks must come in order and whole, as frame.Scanner gives them;
// chunk is not kept.
func (r *Reader) Read(chunk []byte) Mark {
	r.chunk = chunk
	m := r.unframe(chunk)
	r.chunk = nil
	r.named = r.named || m.Content
	m.Content = m.Content && !m.Failed // an error is never content, whatever else its event holds
	m.Finish = m.Final || m.Finish && r.armed()
	return m
}

func (r *Reader) unframe(chunk []byte) Mark {
	switch r.kind {
	case frame.SSE:
		return r.readSSE(chunk)
	case frame.NDJSON:
		return r.readData("", strings.TrimSpace(view(chunk)))
	case frame.JSONArray:
		return r.readElement(chunk)
	case frame.AWS:
		return r.readMessage(chunk)
	case frame.Whole:
		return r.readWhole(view(chunk))
	}
	return r.readUnframed(chunk)
}

// Verdict returns what the chunks so far amount to if the body ends here. clean says whether the
// transport ended properly: terminator, END_STREAM, or all of the announced length.
func (r *Reader) Verdict(clean bool) Verdict {
	v := Verdict{
		Failure:      r.failure,
		FailureChunk: r.failureChunk,
		ProviderID:   r.id,
		Model:        r.model,
		ToolStarted:  r.tool,
	}
	if r.metered {
		u := r.usage
		u.Raw = bytes.Clone(u.Raw)
		v.Usage = &u
	}
	if r.failure != nil {
		return v
	}
	told := r.final || r.armed()
	v.Proven = told || r.provenByEnd(clean)
	if !v.Proven {
		return v
	}
	if r.weak() {
		v.Notes = append(v.Notes, noteWeak)
	}
	if told && !r.final && !clean && !r.metered {
		v.Notes = append(v.Notes, noteUsage)
	}
	if r.policy {
		v.Refused = true
		v.Notes = append(v.Notes, notePolicy)
	}
	return v
}

// armed reports whether a finish stands: no choice has had content since its own.
func (r *Reader) armed() bool { return r.ended && r.open == 0 && r.failure == nil }

// provenByEnd reports whether the end of the body is all the proof that its shape can give.
func (r *Reader) provenByEnd(clean bool) bool {
	if r.pending() || !clean {
		return false
	}
	if r.whole && (r.known || r.dialect == Generic) {
		return true // all of it arrived
	}
	return !r.known && r.strange
}

// weak reports whether a proven end deserves the note: where nothing of the dialect was recognised
// and the body promised more than its own end. For Generic [DONE] is as much as there is.
func (r *Reader) weak() bool {
	if r.dialect == Generic {
		return !r.final && !r.whole && r.kind != frame.Opaque
	}
	return !r.known
}

// pending reports whether a body in an unexpected shape is still being held.
func (r *Reader) pending() bool { return len(r.unframed) > 0 && !r.judged }

// strayChoice is where content counts that belongs to no choice. Any finish closes it.
const strayChoice = 63

// advance notes content and finish of one choice.
func (r *Reader) advance(choice int64, content, finish bool) {
	bit := uint64(1) << min(uint64(max(choice, 0)), strayChoice)
	if content {
		r.open |= bit
	}
	if finish {
		r.open &^= bit | 1<<strayChoice
		r.ended = true
	}
}

// progress is the mark of an event of a protocol that has no choices.
func (r *Reader) progress(content, finish bool) Mark {
	r.known = true
	r.advance(0, content, finish)
	return Mark{Content: content, Finish: finish}
}

// conclude is the mark of an irrevocable end.
func (r *Reader) conclude() Mark {
	if r.failure != nil {
		return Mark{}
	}
	r.final = true
	return Mark{Finish: true, Final: true}
}

// fail keeps the provider's first error. After a final proof there is none.
func (r *Reader) fail(data string) Mark {
	if r.final {
		return Mark{}
	}
	if r.failure == nil {
		if data == "" {
			data = "{}"
		}
		r.failure = []byte(strings.Clone(data))
		r.failureChunk = bytes.Clone(r.chunk)
	}
	return Mark{Failed: true}
}

// refused notes a reason that is a refusal.
func (r *Reader) refused(reason string) {
	if refuses(reason) {
		r.policy = true
	}
}

// identify takes the answer's id and model. The last ones before the first content count: some
// gateways send events of their own before the answer begins.
func (r *Reader) identify(id, model gjson.Result) {
	set := func(have *string, v gjson.Result) {
		if v.Type == gjson.String && v.Str != "" && v.Str != *have && (!r.named || *have == "") {
			*have = strings.Clone(v.Str)
		}
	}
	set(&r.id, id)
	set(&r.model, model)
}
