/**
 * A policy module for the OPA wasm ABI (version 1.3), put together by hand, since the compiler `opa`
 * is a binary of its own. In Rego it would say:
 *
 *     decision := {"effect": "deny"} if contains(json.marshal(input), "!")
 *     else := {"effect": "review"} if contains(json.marshal(input), "?")
 *     else := {"effect": "allow"}
 */
const DENY = 1024
const REVIEW = 1088
const ALLOW = 1152
const BUILTINS = 1216
const ENTRYPOINTS = 1232
const DATA = 1280
const HEAP = 4096

const leb = (value: number): number[] => {
  const bytes: number[] = []
  for (;;) {
    const byte = value & 0x7f
    value >>= 7
    if ((value === 0 && !(byte & 0x40)) || (value === -1 && byte & 0x40)) return [...bytes, byte]
    bytes.push(byte | 0x80)
  }
}
const text = (value: string): number[] => [value.length, ...new TextEncoder().encode(value)]
const vector = (items: readonly number[][]): number[] => [...leb(items.length), ...items.flat()]
const section = (id: number, body: number[]): number[] => [id, ...leb(body.length), ...body]
const constant = (value: number): number[] => [0x41, ...leb(value)]
const code = (body: number[]): number[] => {
  const whole = [0x00, ...body, 0x0b]
  return [...leb(whole.length), ...whole]
}

/** Looks for a byte in the input; leaves the function with `answer` when it is there. */
const answerIfThere = (byte: number, answer: number): number[] =>
  [
    [0x41, 0x00, 0x21, 0x00], // local 0 (reserved): position = 0
    [0x02, 0x40, 0x03, 0x40], // block, loop
    [0x20, 0x00, 0x20, 0x04, 0x4e, 0x0d, 0x01], // position >= input length: out of the block
    [0x20, 0x03, 0x20, 0x00, 0x6a, 0x2d, 0x00, 0x00, ...constant(byte), 0x46], // input[position] == byte
    [0x04, 0x40, ...constant(answer), 0x0f, 0x0b], // if so: return
    [0x20, 0x00, 0x41, 0x01, 0x6a, 0x21, 0x00, 0x0c, 0x00, 0x0b, 0x0b], // position += 1, again
  ].flat()

const I32 = 0x7f
const types = [
  [0x60, 0, 1, I32], // () → i32
  [0x60, 1, I32, 1, I32], // (i32) → i32
  [0x60, 2, I32, I32, 1, I32], // (i32, i32) → i32
  [0x60, 7, ...Array<number>(7).fill(I32), 1, I32], // opa_eval
]
const functions: readonly [name: string, type: number, body: number[]][] = [
  ['builtins', 0, constant(BUILTINS)],
  ['entrypoints', 0, constant(ENTRYPOINTS)],
  ['opa_heap_ptr_get', 0, constant(HEAP)],
  ['opa_malloc', 1, constant(HEAP - 1024)],
  ['opa_json_dump', 1, [0x20, 0x00]],
  ['opa_json_parse', 2, constant(DATA)],
  [
    'opa_eval',
    3,
    [...answerIfThere(0x21, DENY), ...answerIfThere(0x3f, REVIEW), ...constant(ALLOW)],
  ],
]
const strings: readonly [address: number, value: string][] = [
  [DENY, '[{"result":{"effect":"deny"}}]'],
  [REVIEW, '[{"result":{"effect":"review"}}]'],
  [ALLOW, '[{"result":{"effect":"allow"}}]'],
  [BUILTINS, '{}'],
  [ENTRYPOINTS, '{"uaicp/decision":0}'],
  [DATA, '{}'],
]
const globals = ['opa_wasm_abi_version', 'opa_wasm_abi_minor_version']

const MAGIC_AND_VERSION = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00]

export const opaModule: Uint8Array<ArrayBuffer> = new Uint8Array([
  ...MAGIC_AND_VERSION,
  ...section(1, vector(types)),
  ...section(2, vector([[...text('env'), ...text('memory'), 0x02, 0x00, 0x02]])),
  ...section(3, vector(functions.map(([, type]) => [type]))),
  ...section(6, vector([1, 3].map((value) => [I32, 0x00, ...constant(value), 0x0b]))),
  ...section(
    7,
    vector([
      ...functions.map(([name], index) => [...text(name), 0x00, index]),
      ...globals.map((name, index) => [...text(name), 0x03, index]),
    ]),
  ),
  ...section(10, vector(functions.map(([, , body]) => code(body)))),
  ...section(
    11,
    vector(
      strings.map(([address, value]) => [0x00, ...constant(address), 0x0b, ...text(`${value}\0`)]),
    ),
  ),
])
