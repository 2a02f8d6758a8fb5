/**
 * Histories as Pydantic AI dumps them, written by hand after its field order: every part kind and every kind of user
 * content, odd timestamps, and numbers that JavaScript would print otherwise (written as "#18.0" and put in afterwards).
 */

type Fields = Record<string, unknown>

let clock = 0

function time(): string {
  clock += 1
  return `2026-05-04T10:00:00.${String(clock).padStart(6, '0')}Z`
}

export function pydanticRequest(parts: readonly Fields[], extra: Fields = {}): Fields {
  return {
    parts,
    timestamp: time(),
    instructions: null,
    kind: 'request',
    run_id: null,
    conversation_id: null,
    metadata: null,
    state: 'complete',
    ...extra,
  }
}

export function pydanticResponse(parts: readonly Fields[], extra: Fields = {}): Fields {
  return {
    parts,
    usage: usage(12, 3),
    model_name: 'model-x',
    timestamp: time(),
    kind: 'response',
    provider_name: 'acme',
    provider_url: 'https://api.acme.example',
    provider_details: { finish_reason: 'end' },
    provider_response_id: 'resp_1',
    finish_reason: 'stop',
    run_id: null,
    conversation_id: null,
    metadata: null,
    state: 'complete',
    ...extra,
  }
}

function usage(input: number, output: number): Fields {
  return {
    input_tokens: input,
    cache_write_tokens: 0,
    cache_read_tokens: 0,
    output_tokens: output,
    input_audio_tokens: 0,
    cache_audio_read_tokens: 0,
    output_audio_tokens: 0,
    details: { reasoning_tokens: 1 },
    cost: '0.0000225',
    output_reasoning_tokens: 1,
  }
}

const provider = { id: null, provider_name: null, provider_details: null }

export const pydanticPart = {
  system: (content: string): Fields => ({
    content,
    timestamp: time(),
    dynamic_ref: null,
    part_kind: 'system-prompt',
  }),
  prompt: (content: unknown): Fields => ({ content, timestamp: time(), part_kind: 'user-prompt' }),
  text: (content: string): Fields => ({ content, ...provider, part_kind: 'text' }),
  thinking: (content: string, extra: Fields = {}): Fields => ({
    content,
    id: 'rs_1',
    signature: 'c2ln',
    provider_name: 'acme',
    provider_details: null,
    part_kind: 'thinking',
    ...extra,
  }),
  call: (id: string, args: unknown, kind = 'tool-call'): Fields => ({
    tool_name: 'look_up',
    args,
    tool_call_id: id,
    tool_kind: null,
    ...provider,
    part_kind: kind,
  }),
  answer: (id: string, content: unknown, outcome = 'success'): Fields => ({
    tool_name: 'look_up',
    content,
    tool_call_id: id,
    tool_kind: null,
    metadata: null,
    timestamp: time(),
    outcome,
    part_kind: 'tool-return',
  }),
  builtinAnswer: (id: string): Fields => ({
    tool_name: 'web_search',
    content: [{ url: 'https://example.org', score: '#1.0' }],
    tool_call_id: id,
    tool_kind: null,
    metadata: null,
    timestamp: time(),
    outcome: 'success',
    provider_name: 'acme',
    provider_details: { type: 'result' },
    part_kind: 'builtin-tool-return',
  }),
  retry: (content: unknown, tool_name: string | null, tool_call_id: string): Fields => ({
    content,
    tool_name,
    tool_call_id,
    timestamp: time(),
    part_kind: 'retry-prompt',
  }),
  speech: (speaker: string): Fields => ({
    speaker,
    transcript: 'hello',
    audio: binary(),
    interrupted_at_ms: 120,
    ...provider,
    part_kind: 'speech',
  }),
  compaction: (): Fields => ({
    content: null,
    id: 'cmp_1',
    provider_name: 'acme',
    provider_details: { encrypted: 'x' },
    part_kind: 'compaction',
  }),
  file: (): Fields => ({ content: binary(), ...provider, part_kind: 'file' }),
  delta: (): Fields => ({
    tools_added: ['look_up'],
    tool_call_id: 'd1',
    part_kind: 'tool-availability-delta',
  }),
}

function binary(): Fields {
  return {
    data: '_-79',
    media_type: 'image/png',
    vendor_metadata: { detail: 'high' },
    kind: 'binary',
    identifier: 'f09626',
  }
}

function url(kind: string, force_download: unknown): Fields {
  return {
    url: `https://example.org/${kind}`,
    force_download,
    vendor_metadata: null,
    kind,
    media_type: 'image/png',
    identifier: 'abc123',
  }
}

/** JSON text, with "#…" strings replaced by the bare number they hold. */
export function dump(messages: unknown): string {
  return JSON.stringify(messages).replace(/"#(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e\d+)?)"/g, '$1')
}

const p = pydanticPart

/** Every part kind and content kind. */
export function everyKind(): string {
  clock = 0
  return dump([
    pydanticRequest(
      [
        p.system('You are kind.'),
        p.prompt([
          'look',
          { content: 'noted', metadata: { a: '#2.50' }, kind: 'text-content' },
          url('image-url', false),
          url('audio-url', true),
          url('video-url', 'allow-local'),
          url('document-url', false),
          binary(),
          {
            file_id: 'file_1',
            provider_name: 'acme',
            vendor_metadata: null,
            kind: 'uploaded-file',
            media_type: 'application/pdf',
            identifier: 'd0c',
          },
          { kind: 'cache-point', ttl: '1h' },
        ]),
        p.system('And brief.'),
      ],
      { instructions: 'Answer in Dutch.', timestamp: null, metadata: { trace: '#-0.0' } },
    ),
    pydanticResponse([
      p.thinking(''),
      p.thinking('hm', { id: null, signature: null, provider_name: null }),
      p.text('a'),
      p.text('b'),
      p.call('c1', '{"q": 1.0,  "ü": "\\u00e9"}'),
      p.call('c2', { q: '#18.0', big: '#12345678901234567890', 2: 'two', 1: 'one' }),
      p.call('c3', null),
      p.call('b1', { q: 'x' }, 'builtin-tool-call'),
      p.builtinAnswer('b1'),
      p.compaction(),
      p.file(),
      p.speech('assistant'),
    ]),
    pydanticRequest(
      [
        p.answer('c1', { ok: true, img: binary(), score: '#1e2' }),
        p.answer('c2', 'keep it', 'denied'),
        p.answer('c3', null, 'interrupted'),
        p.delta(),
        p.retry(
          [
            {
              type: 'missing',
              loc: ['q', 0],
              msg: 'Field required',
              input: { n: '#1.0' },
              ctx: {},
              url: 'u',
            },
          ],
          'look_up',
          'c9',
        ),
        p.retry('Say it again', null, 'pyd_ai_invented'),
      ],
      { instructions: 'Answer in Dutch.' },
    ),
    pydanticResponse([], {
      finish_reason: null,
      usage: usage(0, 0),
      state: 'interrupted',
      timestamp: '2026-05-04T12:00:01+02:00',
    }),
    pydanticRequest([p.speech('user')]),
    pydanticRequest([]),
  ])
}

/** Two runs, told apart by run_id; the second resumes the first after a pause. */
export function pausedRun(): string {
  clock = 0
  const first = { run_id: 'run-1', conversation_id: 'conv' }
  const second = { run_id: 'run-2', conversation_id: 'conv' }
  return dump([
    pydanticRequest([p.system('Be careful.'), p.prompt('clean up')], first),
    pydanticResponse([p.text('Both?'), p.call('a', {}), p.call('b', {}), p.call('c', {})], first),
    pydanticRequest([p.answer('c', ['x'])], first),
    pydanticRequest([p.answer('a', 'gone'), p.answer('b', 'keep it', 'denied')], second),
    pydanticResponse([p.text('Done.')], second),
    pydanticRequest([p.answer('zz', 1), p.prompt('extra from a tool')], second),
    pydanticResponse([p.text('Seen.')], second),
  ])
}

/** A dump from before `outcome`, `state` and `run_id` existed, with times that are naive, absent or numbers. */
export function oldDump(): string {
  return dump([
    {
      parts: [{ content: 'hi', timestamp: '2025-01-02T03:04:05', part_kind: 'user-prompt' }],
      kind: 'request',
    },
    {
      parts: [{ content: 'yo', part_kind: 'text' }],
      model_name: 'm',
      timestamp: '2025-01-02T03:04:06',
      kind: 'response',
      vendor_id: 'v',
    },
    {
      parts: [{ tool_name: 't', content: 1, tool_call_id: 'x', part_kind: 'tool-return' }],
      kind: 'request',
      timestamp: 1735787047,
    },
  ])
}
