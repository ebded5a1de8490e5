package tail

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spool-dev/spool/buffer"
)

// sharing has readers of one large chunk each take their page, and says through got who has it.
func sharing(ctx context.Context, f fixture, pages *Pages, readers int) (got chan *Cursor, failed chan error) {
	got, failed = make(chan *Cursor, readers), make(chan error, readers)
	for range readers {
		c := New(f.store, f.id, 0)
		c.Bound(pages)
		go func() {
			page, err := c.Next(ctx)
			if err == nil && (len(page.Chunks) != 1 || len(page.Chunks[0].Data) <= PageBytes || c.Shares() != (pages != nil)) {
				err = errors.New("a page that is not the chunk")
			}
			if err != nil {
				failed <- err
				return
			}
			got <- c
		}()
	}
	synctest.Wait()
	return got, failed
}

// As many large pages are held as there is room for. Whoever gives one up lets one other have one, in the end all.
func TestPages_BoundWhatReadersHold(t *testing.T) {
	const large = 2 * PageBytes
	for name, test := range map[string]struct {
		pages *Pages
		held  int // at once
	}{
		"room for three":       {NewPages(3*large + 1), 3},
		"room for less than 1": {NewPages(1), 1},
		"no bound":             {nil, 10},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f fixture) {
				f.append(buffer.Streaming, strings.Repeat("x", large), "small")
				const readers = 10
				got, failed := sharing(t.Context(), f, test.pages, readers)
				for left := readers; left > 0; left-- {
					if want := min(test.held, left); len(got) != want || len(failed) > 0 {
						t.Errorf("%d readers have a page, want %d; %d have failed", len(got), want, len(failed))
						return
					}
					c := <-got
					if left%2 == 0 {
						c.Close()
						c.Close() // again is nothing
					} else {
						f.wantNext(c, "small") // which takes no room
					}
					if c.Shares() {
						t.Error("it still holds what it has given up")
					}
					synctest.Wait()
				}
				f.append(buffer.Completed)
			})
		})
	}
}

func TestPages_NilHoldsWhatIsAskedFor(t *testing.T) {
	var none *Pages
	if give, ok := none.Hold(2 * PageBytes); ok {
		give()
	} else {
		t.Error("no bound refuses")
	}
}

// Who leaves while it waits takes nothing with it, and a log that fails meanwhile neither.
func TestPages_LeavingGivesNothingAway(t *testing.T) {
	left := errors.New("the reader has left")
	bubble(t, func(t *testing.T, f fixture) {
		f.append(buffer.Completed, strings.Repeat("x", 2*PageBytes))
		pages := NewPages(2 * PageBytes)
		first, _ := sharing(t.Context(), f, pages, 1)
		ctx, leave := context.WithCancelCause(t.Context())
		_, failed := sharing(ctx, f, pages, 5)
		leave(left)
		for range 5 {
			if err := <-failed; !errors.Is(err, left) {
				t.Errorf("got error %v", err)
			}
		}
		_, failed = sharing(t.Context(), f, pages, 2)
		_, err := f.store.Release(t.Context(), f.id)
		f.must(err)
		_, err = f.store.Sweep(t.Context(), time.Now(), nil)
		f.must(err)
		(<-first).Close()
		for range 2 {
			if err := <-failed; !errors.Is(err, buffer.ErrReleased) {
				t.Errorf("got error %v", err)
			}
		}
		if give, ok := pages.Hold(2 * PageBytes); !ok {
			t.Error("there is no room, though nobody holds anything")
		} else {
			give()
		}
	})
}
