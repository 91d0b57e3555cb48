// Package sections is what the programs share: parts that print, each of which goes on where the one before failed.
package sections

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/lib/pq"
)

// Part is a piece of a program: "# Name", what Body prints, and "! SQLSTATE message" where it fails.
type Part struct {
	Name string
	Body func() error
}

// Run runs all parts.
func Run(parts []Part) {
	for _, part := range parts {
		fmt.Println("#", part.Name)
		Tell(part.Body())
	}
}

// URL says where the server is.
func URL() string {
	at := func(name string) string { return os.Getenv("PG" + name) }
	return fmt.Sprintf("postgres://%s@%s:%s/%s?sslmode=disable", at("USER"), at("HOST"), at("PORT"), at("DATABASE"))
}

// Tell prints an error, if it is one, as its SQLSTATE and message, whichever driver gave it.
func Tell(err error) {
	var one *pgconn.PgError
	var other *pq.Error
	switch {
	case err == nil:
	case errors.As(err, &one):
		fmt.Println("!", one.Code, one.Message, one.Detail, one.Hint, one.Position, one.TableName, one.ColumnName, one.ConstraintName)
	case errors.As(err, &other):
		fmt.Println("!", other.Code, other.Message, other.Detail, other.Hint, other.Position, other.Table, other.Column, other.Constraint)
	default:
		fmt.Println("!", strings.Split(err.Error(), "\n")[0])
	}
}

// Say prints values in one line; what is neither text nor a number, as JSON.
func Say(values ...any) {
	for at, value := range values {
		switch value.(type) {
		case string, int, int32, int64, bool, float64:
		default:
			if text, err := json.Marshal(value); err == nil {
				values[at] = string(text)
			}
		}
	}
	fmt.Println(values...)
}
