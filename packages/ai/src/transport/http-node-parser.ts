/**
 * The longest head of a response (status line and headers) that is accepted; real heads have a few
 * kilobytes.
 */
const MAX_HEAD_BYTES = 64 * 1024
const MAX_LINE_BYTES = 16 * 1024

const LF = 10
const CR = 13

/** The position in a chunked body (RFC 9112 §7.1). */
type ChunkState = 'size' | 'extension' | 'data' | 'dataEnd' | 'trailer'

/**
 * Reads one HTTP/1.1 response from the bytes of a connection, one network read at a time. Anything
 * malformed is an error; nothing is guessed. Node's own parser is not used because it calls back for
 * every chunk of a chunked body, which costs more than decoding the tokens of a stream.
 */
export class ResponseParser {
  status = 0
  readonly headers: Map<string, string> = new Map()
  hasHead = false
  isDone = false
  /** True if the connection may carry another request. */
  canReuse = false
  #head: Buffer | undefined
  #framing: 'length' | 'chunked' | 'close' = 'close'
  /** Bytes of the body, or of the current chunk, that have not arrived yet. */
  #rest = 0
  #state: ChunkState = 'size'
  #sizeDigits = 0
  #lineBytes = 0
  /** Bytes of interim responses and trailers. They are not used, but a server must not send them without end. */
  #extraBytes = 0

  /**
   * Parses the bytes of one network read and returns the body bytes in them. The body bytes of a chunked
   * body are moved together within `input`, which is overwritten.
   */
  push(input: Buffer): Buffer {
    if (this.isDone) return this.#tooMuch(input)
    if (this.hasHead) return this.#body(input)
    const bytes = this.#head ? Buffer.concat([this.#head, input]) : input
    this.#head = undefined
    return this.#readHead(bytes)
  }

  /** How long the server keeps an idle connection, minus one second for the network delay. */
  get idleMs(): number | undefined {
    const seconds = /(?:^|[\s,;])timeout=(\d{1,6})/i.exec(this.headers.get('keep-alive') ?? '')?.[1]
    return seconds === undefined ? undefined : Math.max(0, Number(seconds) * 1000 - 1000)
  }

  /** Called when the server closed the connection; returns true if the response is then complete. */
  end(): boolean {
    if (this.hasHead && this.#framing === 'close') this.isDone = true
    return this.isDone
  }

  #readHead(bytes: Buffer): Buffer {
    // The first wrong byte is refused immediately: a server of another protocol (mail, TLS, HTTP/2) may send a
    // few bytes and then wait, and the call would wait with it.
    for (let i = 0; i < START.length && i < bytes.length; i++)
      if (bytes[i] !== START[i]) throw notHttp()
    const end = bytes.indexOf('\r\n\r\n')
    if (end < 0) {
      if (bytes.length > MAX_HEAD_BYTES) throw malformed('its headers are too large')
      this.#head = bytes
      return bytes.subarray(0, 0)
    }
    this.#parseHead(bytes.toString('latin1', 0, end))
    const rest = bytes.subarray(end + 4)
    // An interim response (1xx): the final response follows.
    if (this.status < 200) {
      this.#extraBytes += end + 4
      if (this.#extraBytes > MAX_HEAD_BYTES) throw malformed('it has too many interim responses')
      this.headers.clear()
      return this.#readHead(rest)
    }
    this.hasHead = true
    this.#chooseFraming()
    return this.isDone ? this.#tooMuch(rest) : this.#body(rest)
  }

  #parseHead(text: string): void {
    const lines = text.split('\r\n')
    const status = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: |$)/.exec(lines[0]!)
    if (!status || status[2] === '101') throw notHttp()
    this.status = Number(status[2])
    for (let i = 1; i < lines.length; i++) this.#parseHeader(lines[i]!)
    const connection = this.headers.get('connection')?.toLowerCase()
    this.canReuse = status[1] === '1' ? connection !== 'close' : connection === 'keep-alive'
  }

  #parseHeader(line: string): void {
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).toLowerCase()
    if (colon < 1 || !/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(name))
      throw malformed('a header has no name')
    const value = line.slice(colon + 1).trim()
    const before = this.headers.get(name)
    this.headers.set(name, before === undefined ? value : `${before}, ${value}`)
  }

  /** Decides how the end of the body is found (RFC 9112 §6.3). */
  #chooseFraming(): void {
    const transfer = this.headers.get('transfer-encoding')?.toLowerCase()
    const length = this.headers.get('content-length')
    if (this.status === 204 || this.status === 304) this.isDone = true
    else if (transfer !== undefined) {
      if (transfer !== 'chunked') throw malformed(`its transfer encoding is "${transfer}"`)
      this.#framing = 'chunked'
      // Chunked encoding together with a content length is used to smuggle requests, so the connection
      // is not used again.
      if (length !== undefined) this.canReuse = false
    } else if (length !== undefined) {
      const sizes = new Set(length.split(',').map((size) => size.trim()))
      if (sizes.size !== 1 || !/^\d{1,15}$/.test([...sizes][0]!)) {
        throw malformed('its content length is not one number')
      }
      this.#framing = 'length'
      this.#rest = Number([...sizes][0])
      this.isDone = this.#rest === 0
    } else this.canReuse = false
  }

  #body(input: Buffer): Buffer {
    if (this.#framing === 'chunked') return this.#chunked(input)
    if (this.#framing === 'close' || input.length < this.#rest) {
      this.#rest -= input.length
      return input
    }
    this.isDone = true
    if (input.length > this.#rest) this.canReuse = false
    return input.subarray(0, this.#rest)
  }

  /**
   * Moves the data of all chunks together within the buffer, over the size lines between them, so
   * nothing is allocated.
   */
  #chunked(input: Buffer): Buffer {
    let position = 0
    let write = 0
    while (position < input.length && !this.isDone) {
      if (this.#state === 'data') {
        const end = Math.min(position + this.#rest, input.length)
        if (write !== position) input.copyWithin(write, position, end)
        write += end - position
        this.#rest -= end - position
        position = end
        if (this.#rest === 0) this.#state = 'dataEnd'
      } else this.#chunkByte(input[position++]!)
    }
    if (position < input.length) this.canReuse = false
    return input.subarray(0, write)
  }

  #chunkByte(byte: number): void {
    if (++this.#lineBytes > MAX_LINE_BYTES) throw malformed('a chunk line is too long')
    if (this.#state === 'size') this.#sizeByte(byte)
    else if (this.#state === 'dataEnd') {
      if (byte === LF) this.#startLine('size')
      else if (byte !== CR) throw malformed('a chunk is longer than its size')
    } else if (this.#state === 'extension') {
      if (byte === LF) this.#endSize()
    } else if (++this.#extraBytes > MAX_HEAD_BYTES) throw malformed('its trailers are too large')
    else if (byte === LF) {
      // The end of a trailer line; an empty line ends the body.
      if (this.#lineBytes === 2) this.isDone = true
      this.#lineBytes = 0
    } else if (this.#lineBytes === 1 && byte !== CR) this.#lineBytes = 2
  }

  #sizeByte(byte: number): void {
    const digit = hexDigit(byte)
    if (digit >= 0) {
      if (++this.#sizeDigits > 12) throw malformed('a chunk size is too large')
      this.#rest = this.#rest * 16 + digit
    } else if (this.#sizeDigits === 0) throw malformed('a chunk has no size')
    else if (byte === LF) this.#endSize()
    else if (byte === CR || byte === 59 || byte === 32 || byte === 9) this.#state = 'extension'
    else throw malformed('a chunk size is not a number')
  }

  #endSize(): void {
    this.#startLine(this.#rest === 0 ? 'trailer' : 'data')
  }

  #startLine(state: ChunkState): void {
    this.#state = state
    this.#sizeDigits = 0
    this.#lineBytes = 0
  }

  /** Drops bytes after the end of the response and prevents reuse, because no request asked for them. */
  #tooMuch(input: Buffer): Buffer {
    if (input.length > 0) this.canReuse = false
    return input.subarray(0, 0)
  }
}

function hexDigit(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48
  const lower = byte | 32
  return lower >= 97 && lower <= 102 ? lower - 87 : -1
}

const START = Buffer.from('HTTP/1.')

function notHttp(): Error {
  return malformed('it does not begin with an HTTP/1.1 status')
}

function malformed(what: string): Error {
  return Object.assign(new Error(`The response is not HTTP/1.1: ${what}`), { code: 'HPE_INVALID' })
}
