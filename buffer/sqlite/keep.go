package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync"

	"modernc.org/sqlite"
)

// holders are the pages that are being read, by the number that their query gives to the SQL function hold.
type holders struct {
	mu   sync.Mutex
	last int64
	of   map[int64]*pageMemory
}

var holding = &holders{of: map[int64]*pageMemory{}}

func (h *holders) begin(m *pageMemory) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	h.of[h.last] = m
	return h.last
}

func (h *holders) end(number int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.of, number)
}

func (h *holders) get(number int64) *pageMemory {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.of[number]
}

// hold(number, data) copies data, a blob, to the memory of the page with that number, and returns its length: a
// column would get new memory for each row. It is called where the statement is stepped, so by the page's reader.
func hold(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
	number, _ := args[0].(int64)
	data, ok := args[1].([]byte) // SQLite's, until this returns
	if !ok {
		return nil, errors.New("hold: the data is no blob")
	}
	m := holding.get(number)
	if m == nil {
		return nil, errors.New("hold: nobody reads the page")
	}
	m.add(data)
	return int64(len(data)), nil
}

// connector opens connections that know hold.
type connector struct{ dsn string }

var withHold = newDriver()

func newDriver() *sqlite.Driver {
	d := new(sqlite.Driver)
	d.MustRegisterFunction("hold", &sqlite.FunctionImpl{NArgs: 2, Scalar: hold, VolatileArgs: true})
	return d
}

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return withHold.Open(c.dsn)
}

// Driver implements driver.Connector.
func (c connector) Driver() driver.Driver { return withHold }
