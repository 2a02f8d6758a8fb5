import * as entry from '@skein/ai'
import defaultExport, {
  ai,
  ContentBlockType,
  embedding,
  ErrorCode,
  image,
  llm,
  LogLevel,
  MessageRole,
  Modality,
  StopReason,
  StreamEventType,
  Thread,
  UserMessage,
  createProvider,
} from '@skein/ai'
import { scripted } from '@skein/ai/testing'
import { openai } from '@skein/ai/openai'
import { manualClock } from '@skein/base'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const packageFolder = fileURLToPath(new URL('../../packages/ai', import.meta.url))

test('UPP-001 names are as TypeScript has them: camelCase, PascalCase for types and their constants', () => {
  const names = Object.keys(entry).concat(membersOf(llm({ model: openai('m') })))
  expect(names.length).toBeGreaterThan(50)
  expect(names.filter((name) => !/^[a-zA-Z][a-zA-Z0-9]*$/.test(name))).toEqual([])
})

test('UPP-007 one entry point per modality', () => {
  const { llm: language } = scripted([]).provider.handlers
  const { embedding: vectors, image: pictures } = openai.handlers
  const model = createProvider({
    name: 'all',
    llm: language!,
    embedding: vectors!,
    image: pictures!,
  })('m')
  const isOpened = (made: unknown): boolean =>
    typeof made === 'object' &&
    made !== null &&
    ['generate', 'stream', 'embed'].some((name) => name in made)
  const opening = Object.entries(entry).filter(([, open]) => {
    if (typeof open !== 'function' || /^class\b/.test(String(open))) return false
    try {
      const made: unknown = (open as (options: object) => unknown)({ model })
      if (made instanceof Promise) made.catch(() => {})
      return isOpened(made)
    } catch {
      return false
    }
  })
  expect(opening.map(([name]) => name).toSorted()).toEqual(['embedding', 'image', 'llm'])
  expect(Object.keys(ai).toSorted()).toEqual(['embedding', 'image', 'llm'])
})

test('UPP-007 an instance serves one modality, whatever else the options say', () => {
  const config = { apiKey: 'k' }
  const own = {
    llm: ['capabilities', 'executeTools', 'generate', 'infer', 'model', 'stream', 'with'],
    embedding: ['embed', 'model'],
    image: ['capabilities', 'edit', 'generate', 'model', 'stream'],
  }
  for (const modality of Object.values(Modality)) {
    const options = { model: openai('gpt-image-1'), config, modality, mode: modality }
    expect(() => llm(options)).toThrow('does not have these options: modality, mode')
    expect(membersOf(llm({ model: options.model, config }))).toEqual(own.llm)
    expect(membersOf(embedding(options))).toEqual(own.embedding)
    expect(membersOf(image(options))).toEqual(own.image)
  }
})

/** The public fields and methods of an instance. */
function membersOf(instance: object): string[] {
  const methods = Object.getOwnPropertyNames(Object.getPrototypeOf(instance))
  return [...new Set([...Object.keys(instance), ...methods])]
    .filter((name) => name !== 'constructor')
    .toSorted()
}

test('UPP-010 the functions are exported by name and under one namespace, also the default export', () => {
  expect(ai.llm).toBe(llm)
  expect(ai.embedding).toBe(embedding)
  expect(ai.image).toBe(image)
  expect(defaultExport).toBe(ai)
})

test('UPP-011 a vendor is a factory whose models fit every modality function', () => {
  const config = { apiKey: 'k' }
  const model = openai('m-1')
  expect(model).toMatchObject({ modelId: 'm-1', provider: openai })
  expect(llm({ model, config }).model.modelId).toBe('m-1')
  expect(typeof embedding({ model, config }).embed).toBe('function')
  expect(typeof image({ model: openai('gpt-image-1'), config }).generate).toBe('function')
})

test('UPP-009 vendors are called over plain HTTP: no SDK is imported anywhere', () => {
  const files = readdirSync(join(packageFolder, 'src'), { recursive: true, encoding: 'utf8' })
  const sources = files.filter((file) => file.endsWith('.ts') && !/\.test(-d)?\.ts$/.test(file))
  expect(sources.length).toBeGreaterThan(50)
  const foreign = sources.flatMap((file) => {
    const text = readFileSync(join(packageFolder, 'src', file), 'utf8')
    const imports = [
      ...text.matchAll(/^(?:import|export)[^'"]*?from '([^']+)'/gm),
      ...text.matchAll(/^import '([^']+)'/gm),
      ...text.matchAll(/^(?!\s*(?:\*|\/\/)).*\b(?:import|require)\('([^']+)'\)/gm),
    ]
    return imports
      .map(([, from]) => from!)
      .filter(
        (from) =>
          !/^[.#]/.test(from) && // its own files, also by the import map
          !/^@skein\/base(\/|$)/.test(from) &&
          !from.startsWith('node:'),
      )
      .map((from) => `${file}: ${from}`)
  })
  expect(foreign).toEqual([])
  const { dependencies, peerDependencies, optionalDependencies } = JSON.parse(
    readFileSync(join(packageFolder, 'package.json'), 'utf8'),
  ) as Record<string, object | undefined>
  const needed = { ...dependencies, ...peerDependencies, ...optionalDependencies }
  expect(Object.keys(needed)).toEqual(['@skein/base'])
})

test('UPP-141 the three modalities', () => {
  expect(Object.values(Modality).sort()).toEqual(['embedding', 'image', 'llm'])
})

test('UPP-142 unions have named constants with the raw strings as values', () => {
  // Each name is its value in another spelling: text_delta is TextDelta, RATE_LIMITED is RateLimited.
  const nameOf = (value: string): string =>
    value.toLowerCase().replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())
  for (const names of [
    ErrorCode,
    StreamEventType,
    MessageRole,
    ContentBlockType,
    StopReason,
    LogLevel,
  ])
    for (const [name, value] of Object.entries(names)) expect(name).toBe(nameOf(value))
  expect(Modality).toEqual({ LLM: 'llm', Embedding: 'embedding', Image: 'image' })
  expect(ErrorCode.RateLimited).toBe('RATE_LIMITED')
  expect(Object.values(ErrorCode)).toHaveLength(12)
  expect(StreamEventType.TextDelta).toBe('text_delta')
  expect(Object.values(StreamEventType)).toHaveLength(13)
  expect(MessageRole).toEqual({ User: 'user', Assistant: 'assistant', ToolResult: 'tool_result' })
  expect(Object.values(ContentBlockType)).toEqual(
    'text reasoning image document audio video binary native'.split(' '),
  )
  expect(Object.values(StopReason)).toEqual(
    'end_turn max_tokens stop_sequence tool_use pause refusal content_filter context_window other'.split(
      ' ',
    ),
  )
  expect(Object.values(LogLevel)).toEqual(['debug', 'info', 'warn', 'error'])
})

test('UPP-140 serialised timestamps are ISO 8601', () => {
  const message = new UserMessage('x', { timestamp: new Date(Date.UTC(2026, 10, 15, 6)) })
  expect(JSON.parse(JSON.stringify(message))).toMatchObject({
    timestamp: '2026-11-15T06:00:00.000Z',
  })
  const clock = manualClock(Date.UTC(2026, 10, 15, 7) + 1)
  const thread = new Thread({ clock })
  clock.advance(1)
  expect(JSON.parse(JSON.stringify(thread.push(message)))).toMatchObject({
    messages: [{ timestamp: '2026-11-15T06:00:00.000Z' }],
    createdAt: '2026-11-15T07:00:00.001Z',
    updatedAt: '2026-11-15T07:00:00.002Z',
  })
})
