// One function with a number in its name, which guest.go changes: so many modules as
// one wants, no two alike, each as small as a useful one is.
//
//   f00000 KEY   the value, or nothing
#include "ostro.h"

OSTRO_FN(f00000)
{
	ostro_bytes value;
	if (ostro_get(ostro_key(0), &value) == OSTRO_OK)
		ostro_resp(value);
	return 0;
}
