package provider

import (
	"bytes"
	"io"
	"reflect"
	"testing"
	"testing/iotest"

	"github.com/spool-dev/spool/buffer/frame"
)

// meaning is all that an answer's chunks are taken for.
type meaning struct {
	Marks      []Mark
	Clean, Cut Verdict
}

func meaningOf(r io.Reader, d Dialect, k frame.Kind) meaning {
	s, reader := frame.NewScanner(r, k, 1<<16), NewReader(d, k, true)
	var m meaning
	for {
		chunk, err := s.Next()
		if err != nil {
			m.Clean, m.Cut = reader.Verdict(true), reader.Verdict(false)
			return m
		}
		m.Marks = append(m.Marks, reader.Read(chunk))
	}
}

// FuzzReading: what an answer means does not depend on how its bytes came, for every dialect in every
// framing that is cut by its bytes.
func FuzzReading(f *testing.F) {
	seeded := map[Dialect]bool{} // one of each: reading it in every dialect takes its time
	for _, rec := range recordings(f) {
		if len(rec.body) < 2500 && !seeded[rec.dialect] {
			seeded[rec.dialect] = true
			f.Add(rec.body)
		}
	}
	f.Add([]byte("data: {\"choices\":[]}\r\n\r\ndata: [DONE]\r\rdata: {\"error\":{}}"))
	f.Add([]byte(`[{"candidates":[{"finishReason":"STOP"}]},{"error":{"code":500}}`))
	f.Add([]byte("{\"done\":false}\n{\"error\":\"x\"}\n{\"done\":true}"))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, d := range allDialects {
			for _, k := range []frame.Kind{frame.SSE, frame.NDJSON, frame.JSONArray, frame.AWS, frame.Whole} {
				atOnce := meaningOf(bytes.NewReader(body), d, k)
				for name, r := range map[string]io.Reader{
					"byte by byte":      iotest.OneByteReader(bytes.NewReader(body)),
					"half of each read": iotest.HalfReader(bytes.NewReader(body)),
					"end with the data": iotest.DataErrReader(bytes.NewReader(body)),
				} {
					if so := meaningOf(r, d, k); !reflect.DeepEqual(so, atOnce) {
						t.Fatalf("%s, %s, %s:\n%+v\nat once:\n%+v", d, k, name, so, atOnce)
					}
				}
			}
		}
	})
}
