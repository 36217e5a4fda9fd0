// The smallest files of their kinds.
#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// One transparent pixel.
let png = bytes(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==")

/// No samples at 8 kHz.
let wav = bytes("UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=")

private func bytes(_ base64: String) -> Data { Data(base64Encoded: base64) ?? Data() }
