package policy

import (
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// fault is what a provider says about a failure, in whatever layout, before anything is concluded.
type fault struct {
	words    []string // machine words, the strongest first: structured detail, code, type
	inner    int      // a status that the body states; 0 for none
	message  string
	perDay   bool          // Google: a quota for a day is used up
	limit    string        // OpenRouter: whose limit it was
	flagged  bool          // moderation gave its reasons
	delay    time.Duration // Google's RetryInfo
	unworded bool          // it failed without saying anything
}

// The most that is read of what an attacker could make long.
const (
	maxMessage = 4 << 10
	maxDetails = 64
	maxFaults  = 64
)

// findFault returns the error in a body: the first whose words are known, else the first of all. With
// anyObject a plain object is an error too, since the status has said so.
func findFault(body []byte, anyObject bool) (fault, bool) {
	var first fault
	found := 0
	for e := range events(body) {
		f, ok := eventFault(e, anyObject)
		if !ok {
			continue
		}
		if _, class := f.word(); class != "" || f.known() {
			return f, true
		}
		if found++; found == 1 {
			first = f
		} else if found == maxFaults {
			break
		}
	}
	return first, found > 0
}

// eventFault reads the error that one event holds, if it holds one.
func eventFault(e event, anyObject bool) (fault, bool) {
	o := fieldsOf(gjson.ParseBytes(e.data))
	if o == nil {
		if !e.failed {
			return fault{}, false
		}
		return fault{words: codes(e.name), message: beginning(e.data)}, true
	}
	if err := o.errorIn(); err.Exists() {
		return withName(readFault(err, o), e), true
	}
	switch {
	case e.failed, anyObject, o.flat():
		return withName(readFields(o), e), true
	case o["type"].String() == "response.failed", o["choices"].Get(`#(finish_reason=="error")`).Exists():
		return fault{unworded: true}, true
	}
	return fault{}, false
}

// errorIn is the error that an object carries under a name for it. The usual null, "" and {} are none.
func (o fields) errorIn() gjson.Result {
	for _, err := range []gjson.Result{
		o["error"], o["response"].Get("error"), o["choices"].Get(`#(finish_reason=="error").error`),
	} {
		if err.IsObject() && strings.Trim(clip(err.Raw, 64), "{} \t\r\n") != "" || err.Type == gjson.String && err.Str != "" {
			return err
		}
	}
	return gjson.Result{}
}

// flat reports whether an object is itself an error: it says so, or it is an error's inner object,
// with a message and a word that is known.
func (o fields) flat() bool {
	if o["type"].String() == "error" || o["object"].String() == "error" || o["__type"].Exists() {
		return true
	}
	if o["message"].Type != gjson.String {
		return false
	}
	_, class := readFields(o).word()
	return class != ""
}

// withName adds the word that the framing gave: an AWS exception's type.
func withName(f fault, e event) fault {
	if e.failed && e.name != "error" {
		f.words = append(codes(e.name), f.words...)
	}
	return f
}

// readFault reads an error. A string is a message, or a word where it looks like one; then the rest
// is beside it, in outer.
func readFault(err gjson.Result, outer fields) fault {
	if err.Type != gjson.String {
		return readFields(fieldsOf(err))
	}
	f := readFields(outer)
	if !isWord(err.Str) {
		f.message = clip(err.Str, maxMessage)
		return f
	}
	f.words = append(f.words, codes(err.Str)...)
	if f.message == "" {
		f.message = err.Str
	}
	return f
}

// isWord tells a machine's word from a sentence.
func isWord(s string) bool { return len(s) <= 128 && !strings.ContainsAny(s, " \n") }

func readFields(o fields) fault {
	var f fault
	f.readDetails(o["details"])
	metadata := o["metadata"]
	for _, v := range []gjson.Result{
		o["innererror"].Get("code"), metadata.Get("error_type"),
		o["code"], o["__type"], o["type"], o["error_type"], o["status"],
	} {
		if v.Type == gjson.String {
			f.words = append(f.words, codes(v.Str)...)
		}
	}
	for _, name := range []string{"originalStatusCode", "code", "status", "status_code", "statusCode"} {
		if n := o[name].Int(); f.inner == 0 && n >= 300 && n < 600 {
			f.inner = int(n)
		}
	}
	for _, name := range []string{"message", "Message", "detail"} {
		if v := o[name]; f.message == "" && v.Type == gjson.String {
			f.message = clip(v.Str, maxMessage)
		}
	}
	f.limit = clip(metadata.Get("limit_source").String(), 64)
	f.flagged = metadata.Get("reasons.0").Exists() || metadata.Get("flagged_input").String() != ""
	return f
}

// readDetails reads the structured part: Anthropic's object, Google's array of typed objects.
func (f *fault) readDetails(details gjson.Result) {
	f.words = append(f.words, codes(details.Get("error_code").String())...)
	for _, d := range someOf(details) {
		f.words = append(f.words, codes(d.Get("reason").String())...)
		f.perDay = f.perDay || perDay(d.Get("metadata.quota_limit"))
		for _, v := range someOf(d.Get("violations")) {
			f.perDay = f.perDay || perDay(v.Get("quotaId"))
		}
		if f.delay == 0 {
			f.delay = googleDelay(d.Get("retryDelay"))
		}
	}
}

func perDay(v gjson.Result) bool { return strings.Contains(v.String(), "PerDay") }

// someOf is the first objects of an array; none of anything else.
func someOf(list gjson.Result) []gjson.Result {
	if !list.IsArray() {
		return nil
	}
	var some []gjson.Result
	list.ForEach(func(_, v gjson.Result) bool {
		if v.IsObject() {
			some = append(some, v)
		}
		return len(some) < maxDetails
	})
	return some
}

// codes is a word as a list: empty for one that says nothing.
func codes(word string) []string {
	if w := fold(word); w == "" || w == "error" {
		return nil
	}
	return []string{clip(word, 128)}
}

// fields are the fields of an object that are of interest here, read in one pass, since an object may
// be large. Of doubles the first counts.
type fields map[string]gjson.Result

// fieldsOf is nil for what is no object.
func fieldsOf(o gjson.Result) fields {
	if !o.IsObject() {
		return nil
	}
	m := make(fields)
	o.ForEach(func(key, value gjson.Result) bool {
		if _, double := m[key.Str]; !double && ofInterest[key.Str] {
			m[key.Str] = value
		}
		return true
	})
	return m
}

var ofInterest = map[string]bool{
	"error": true, "response": true, "choices": true, "object": true, "type": true, "__type": true,
	"error_type": true, "code": true, "status": true, "status_code": true, "statusCode": true,
	"originalStatusCode": true, "message": true, "Message": true, "detail": true, "details": true,
	"metadata": true, "innererror": true,
}

// word is the strongest known word and its class. Without a known one it is the strongest of all,
// and no class.
func (f fault) word() (string, Class) {
	for _, w := range f.words {
		if class, ok := words[fold(w)]; ok {
			return w, class
		}
	}
	if len(f.words) == 0 {
		return "", ""
	}
	return f.words[0], ""
}

// known reports whether something other than a word tells the class.
func (f fault) known() bool { return f.perDay || f.limit != "" || f.flagged || f.inner != 0 }

// plainText is a fault whose body is no JSON: what an edge or a gateway answered in words.
func plainText(body []byte) fault {
	if isPage(body) {
		return fault{}
	}
	return fault{message: beginning(body)}
}

func beginning(body []byte) string {
	return clip(string(body[:min(len(body), maxMessage)]), maxMessage)
}
