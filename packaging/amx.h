// Included before each file of the engine that is compiled with AMX (machine.py). GCC's _tile_loadconfig says that it
// reads 8 of the 64 bytes of a tiles' configuration (amxtileintrin.h), so the compiler leaves out what llama.cpp writes
// to the others, and the first tile instruction ends the program. This one says what it reads.
#if defined(__AMX_TILE__) && defined(__GNUC__)
#include <immintrin.h>

static inline __attribute__((always_inline)) void kvdesk_tile_loadconfig(const void * config) {
    struct tiles { char bytes[64]; };
    __asm__ volatile("ldtilecfg %0" : : "m"(*static_cast<const tiles *>(config)));
}

#define _tile_loadconfig kvdesk_tile_loadconfig
#endif
