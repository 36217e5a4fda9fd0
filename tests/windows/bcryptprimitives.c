/* bcryptprimitives.dll for a wine that has none: Rust's standard library takes its randomness from it. */
#include <windows.h>
#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size) {
    const ULONG most = 1 << 20;
    while (size > 0) {
        ULONG part = size < most ? (ULONG)size : most;
        if (!RtlGenRandom(data, part)) return FALSE;
        data += part;
        size -= part;
    }
    return TRUE;
}
