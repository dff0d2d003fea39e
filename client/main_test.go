package client_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/ostrodb/ostro/internal/await"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(await.M{M: m}) }
