package fakellm

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// A load event is a chat completion chunk of a fixed size with its number and the time it was sent at
// fixed offsets, so that a client checks order and measures delay without decoding JSON:
//
//	data: {"i":"0000000042","t":"1764500000123456789","id":…,"choices":[{…"delta":{"content":"abc…"}…}]}
//
// Where the size leaves no room for the fields that only strict clients miss, they are left out.
const (
	loadI      = `data: {"i":"`
	loadT      = `","t":"`
	loadFull   = `","id":"chatcmpl-load","object":"chat.completion.chunk","created":1764500000,"model":"load","choices":[{"index":0,"finish_reason":null,"delta":{"content":"`
	loadShort  = `","choices":[{"index":0,"delta":{"content":"`
	loadTail   = "\"}}]}\n\n"
	loadDigits = 10 // of the number
	loadNanos  = 19 // digits of the time, unix nanoseconds

	loadOffI = len(loadI)
	loadOffT = loadOffI + loadDigits + len(loadT)

	maxLoadSize  = 1 << 20
	maxLoadWrite = 1 << 20
	maxLoadRate  = 1_000_000
)

// shape is what the query of a load call asks for.
type shape struct {
	events int  // then [DONE]; 0: without end
	rate   int  // events a second, each one write; 0: as fast as the peer takes them
	size   int  // bytes of an event with its blank line
	batch  int  // rate 0: events in one write
	hold   bool // after the last event stay silent, with the stream open
}

// load answers a call under /load with events=, rate=, size= (100), batch= (1) and hold=.
func load(query url.Values) []Op {
	s := shape{size: 100, batch: 1}
	hold := 0
	for name, field := range map[string]*int{"events": &s.events, "rate": &s.rate, "size": &s.size, "batch": &s.batch, "hold": &hold} {
		if !query.Has(name) {
			continue
		}
		n, err := strconv.Atoi(query.Get(name))
		if err != nil || n < 0 {
			return []Op{refusal(http.StatusBadRequest, "load: not a number: "+name)}
		}
		*field = n
	}
	s.hold = hold != 0
	s.rate = min(s.rate, maxLoadRate)
	s.size = min(s.size, maxLoadSize)
	s.batch = max(1, min(s.batch, maxLoadWrite/max(s.size, 1)))
	return Stream(typeSSE, Op{Kind: opGo, run: s.play})
}

// play writes the chunks itself: one buffer is stamped and sent again and again.
func (s shape) play(p *player) error {
	event := loadEvent(s.size)
	frame := appendChunk(nil, event)
	offset := len(frame) - len(event) - len("\r\n")
	send := s.flatOut
	if s.rate > 0 {
		send = s.paced
	}
	if err := send(p, frame, offset); err != nil {
		return err
	}
	if s.hold {
		return p.wait(nil)
	}
	return p.data(sse("", "[DONE]"))
}

func (s shape) paced(p *player, frame []byte, offset int) error {
	period := time.Second / time.Duration(s.rate)
	next := time.Now().Add(rand.N(period)) // many streams do not tick together
	for i := 0; s.events == 0 || i < s.events; i++ {
		if err := p.sleep(time.Until(next)); err != nil {
			return err
		}
		next = next.Add(period)
		stamp(frame[offset:], i, time.Now())
		if err := p.write(frame); err != nil {
			return err
		}
	}
	return nil
}

func (s shape) flatOut(p *player, frame []byte, offset int) error {
	var buf []byte
	for i := 0; s.events == 0 || i < s.events; {
		now := time.Now()
		buf = buf[:0]
		for k := 0; k < s.batch && (s.events == 0 || i < s.events); k++ {
			stamp(frame[offset:], i, now)
			buf = append(buf, frame...)
			i++
		}
		if err := p.write(buf); err != nil {
			return err
		}
	}
	return nil
}

// loadEvent is an event of size bytes, or of the least that it takes, to be stamped.
func loadEvent(size int) []byte {
	start := fmt.Sprintf("%s%0*d%s%0*d", loadI, loadDigits, 0, loadT, loadNanos, 0)
	middle := loadFull
	if len(start)+len(loadFull)+len(loadTail) > size {
		middle = loadShort
	}
	b := append(make([]byte, 0, size), start+middle...)
	for len(b) < size-len(loadTail) {
		b = append(b, "abcdefghijklmnopqrstuvwxyz"[len(b)%26])
	}
	return append(b, loadTail...)
}

func stamp(event []byte, i int, now time.Time) {
	putDigits(event[loadOffI:loadOffI+loadDigits], int64(i))
	putDigits(event[loadOffT:loadOffT+loadNanos], now.UnixNano())
}

func putDigits(b []byte, v int64) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte('0' + v%10)
		v /= 10
	}
}
