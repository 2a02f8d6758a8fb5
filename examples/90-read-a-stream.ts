/**
 * Reads server-sent events from network reads that are cut anywhere, and gives the result a fingerprint
 * that is the same on every machine.
 *
 * Prints:
 *
 *     delta {"text":"Gr"}
 *     delta {"text":"üße"}
 *     {"order":["Gr","üße"],"text":"Grüße"}
 *     sha256 bdeac741aae2
 */

// #region program
import { canonicalJson, SseDecoder, sha256Hex } from '@skein/base'

const bytes = new TextEncoder().encode(
  'event: delta\ndata: {"text":"Gr"}\n\nevent: delta\ndata: {"text":"üße"}\n\n',
)

const decoder = new SseDecoder()
const words: string[] = []
for (let at = 0; at < bytes.length; at += 7) {
  for (const { event, data } of decoder.push(bytes.subarray(at, at + 7))) {
    console.log(event, data)
    words.push((JSON.parse(data) as { text: string }).text)
  }
}

const canonical = canonicalJson({ text: words.join(''), order: words })
console.log(canonical)
console.log('sha256', sha256Hex(canonical).slice(0, 12))
// #endregion program
