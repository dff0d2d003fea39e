package client_test

import (
	"os"
	"testing"

	"github.com/ostrodb/ostro/internal/await"
)

func TestMain(m *testing.M) { os.Exit(await.RunToEnd(m)) }
