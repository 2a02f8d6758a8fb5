// What a parent receives when a session of its child ends (Standard Agents §7.10), for every way to end.
import { describe, expect, test } from 'vitest'
import { calls, says, waits } from '@skein/ai/testing'
import {
  memoryStore,
  type AgentDefinition,
  type Commit,
  type SubagentToolConfig,
} from '@skein/runtime'
import { linesOf, pair, requestsOf, solo, tool, type SideSetup } from './support/agents.ts'
import { latch } from './support/latch.ts'
import { simulate, type Simulation } from './support/simulate.ts'

const end = tool('end', () => ' told by the tool\n')
const make = tool('make', async (state) => void (await state.writeFile('/out/a.md', 'first')))

function child(side: Partial<SideSetup>): AgentDefinition {
  const { tools = [], ...rest } = side
  return pair('helper', {
    a: { script: [], ...rest, tools: [end, make, ...tools] },
    b: { script: () => says('Continue.') },
  })
}

/** Starts the child, and says `I see.` to whatever comes. */
function boss(helper: AgentDefinition, config: Partial<SubagentToolConfig> = {}): AgentDefinition {
  const start = config.resumable
    ? calls('subagent_create', { agent: 'helper', name: 'Ada', message: 'go' })
    : calls('helper', { message: 'go' })
  return solo('boss', {
    script: (_, index) => (index === 0 && !config.immediate ? start : says('I see.')),
    tools: [{ name: helper, ...config }],
  })
}

const opening = (reference: string, isFailure: boolean) =>
  `Subagent (reference: ${reference}) ${isFailure ? 'has reported a failure' : 'has returned the following result'}:\n\n`

/** The messages of children in a thread. */
async function reports(it: Simulation, id: string) {
  const all = await it.threads.messages(id, { includeSilent: true })
  return all
    .filter(({ subagentId }) => subagentId !== undefined)
    .map(({ message, isSilent, subagentId, attachments }) => ({
      text: message.text,
      isSilent,
      subagentId,
      attachments,
    }))
}

/** The only file of a thread. */
async function fileOf(it: Simulation, id: string): Promise<string> {
  const [file, ...more] = await it.threads.files.list(id)
  expect(more).toEqual([])
  const { bytes } = await it.threads.files.read(id, file!.path)
  expect(new TextDecoder().decode(bytes)).toBe('first')
  expect(file!.path).toMatch(/^\/attachments\/a-[0-9a-f]{8}\.md$/)
  return file!.path
}

async function childOf(it: Simulation, id: string): Promise<string> {
  return (await it.events(id, 'subagent_created'))[0]!.reference
}

interface Way {
  readonly side: Partial<SideSetup>
  readonly text: string
  readonly isFailure: boolean
}

const args = {
  said: '  three\nships \n',
  data: { ships: [3] },
  files: ['/out/a.md'],
  file: '/out/a.md',
}

/** Ends by a tool that is bound to the end of the session, in each form of the binding. */
function bound(field: 'sessionStop' | 'sessionFail'): Record<string, Way> {
  const isFailure = field === 'sessionFail'
  const texts = { said: args.said, data: '{"ships":[3]}', result: ' told by the tool\n' }
  const way = (from: keyof typeof texts, attachmentsProperty: 'files' | 'file'): Way => {
    const messageProperty = from !== 'result' && { messageProperty: from }
    const binding = { name: end, attachmentsProperty, ...messageProperty }
    const side = { script: [calls('make'), calls('end', args)], [field]: binding }
    return { side, text: texts[from], isFailure }
  }
  return {
    [`${field} with a text`]: way('said', 'files'),
    [`${field} with data and one path`]: way('data', 'file'),
    [`${field} with the result of its tool`]: way('result', 'files'),
  }
}

function stopped(failed: boolean, result?: string): Way {
  const stop = tool('stop', (state) =>
    state.stopSession({
      failed,
      attachments: ['/out/a.md'],
      ...(result !== undefined && { result }),
    }),
  )
  return {
    side: { script: [calls('make'), calls('stop')], tools: [stop] },
    text: result ?? '',
    isFailure: failed,
  }
}

const ways: Readonly<Record<string, Way>> = {
  ...bound('sessionStop'),
  ...bound('sessionFail'),
  'stopSession with a result': stopped(false, ' done \n'),
  'stopSession with a failure': stopped(true, ' fog \n'),
  'stopSession with a failure without words': stopped(true),
}

describe.each(Object.entries(ways))('%s', (_, { side, text, isFailure }) => {
  test.each([
    ['disposable', {}],
    ['resumable', { resumable: {} }],
  ] as const)(
    'SA-69 SA-71 SA-72 a %s child that no one waits for: one silent message',
    async (_, config) => {
      const it = await simulate({ agents: [boss(child(side), { ...config, blocking: false })] })
      const { id } = await it.ask('hi')
      await it.idle()
      const reference = await childOf(it, id)
      const path = await fileOf(it, id)
      expect(await reports(it, id)).toEqual([
        {
          text: `${opening(reference, isFailure)}${text}\n\n${path}`,
          isSilent: true,
          subagentId: reference,
          attachments: [path],
        },
      ])
      const left = await it.threads.children(id)
      expect(left.map(({ status }) => status)).toEqual('resumable' in config ? ['idle'] : [])
    },
  )

  test.each([
    ['disposable', {}],
    ['resumable', { resumable: {} }],
    ['explicit', { resumable: { parentCommunication: 'explicit' } }],
  ] as const)(
    'SA-70 SA-71 SA-72 a %s child that a call waits for: its answer',
    async (_, config) => {
      const top = boss(child(side), config)
      const it = await simulate({ agents: [top] })
      const { id } = await it.ask('hi')
      const path = await fileOf(it, id)
      const said = `${'resumable' in config ? opening(await childOf(it, id), isFailure) : ''}${text}\n\n${path}`
      const answer = linesOf(requestsOf(top)[1]).find((line) => line.startsWith('tool_result'))
      const name = 'resumable' in config ? 'subagent_create' : 'helper'
      expect(answer).toBe(
        `tool_result: ${name} ${isFailure ? `! ${said}` : `= ${JSON.stringify(said)}`}`,
      )
      expect(await reports(it, id)).toEqual([])
    },
  )

  test.each([
    ['disposable', {}],
    ['resumable', { resumable: {} }],
    ['explicit', { resumable: { parentCommunication: 'explicit' } }],
  ] as const)(
    'SA-69 SA-74 SA-80 a %s child whose call was stopped before: a silent message, if it is implicit',
    async (kind, config) => {
      const top = boss(child(side), config)
      const it = await simulate({ agents: [top] })
      const id = await it.create()
      const commit = it.store.commit.bind(it.store)
      const closed = latch()
      it.store.commit = async (change) => {
        const isEnd = change.point.split('+').includes('session_end')
        // The stop comes when the child has its result and is about to write it down.
        if (isEnd && change.threads[0]?.id !== id) {
          await it.threads.stop(id)
          await closed.reached
        }
        const result = await commit(change)
        if (isEnd) closed.open()
        return result
      }
      await it.send(id, 'go')
      await closed.reached
      await it.idle()
      it.store.commit = commit
      await it.run(id, 'and?')
      const reference = await childOf(it, id)
      const path = await fileOf(it, id)
      const report = {
        text: `${opening(reference, isFailure)}${text}\n\n${path}`,
        isSilent: true,
        subagentId: reference,
        attachments: [path],
      }
      expect(await reports(it, id)).toEqual(kind === 'explicit' ? [] : [report])
    },
  )
})

describe('SA-74 explicit', () => {
  const explicit = { blocking: false, resumable: { parentCommunication: 'explicit' } } as const

  test('SA-74 a stop by a person and a child that starts by itself queue nothing', async () => {
    const working = latch()
    const script = () => {
      working.open()
      return [waits(Infinity)]
    }
    const it = await simulate({ agents: [boss(child({ script }), explicit)] })
    const { id } = await it.ask('hi')
    await working.reached
    await it.threads.stop(await childOf(it, id))
    await it.idle()
    expect(await it.events(id, 'message_queued')).toHaveLength(1)

    const early = child({ script: [calls('end')], sessionStop: end })
    const other = await simulate({ agents: [boss(early, { ...explicit, immediate: true })] })
    const second = await other.create()
    await other.idle()
    expect(await other.threads.children(second)).toMatchObject([
      { status: 'idle', blocking: false },
    ])
    expect(await other.events(second, 'message_queued')).toEqual([])
  })

  test.each([
    ['explicit', explicit, 'failed', 1],
    ['disposable', { blocking: false }, 'terminated', 2],
  ] as const)(
    'SA-59 SA-74 a child that cannot be worked on: %s',
    async (_, config, lifecycle, queued) => {
      const store = memoryStore()
      const { commit } = store
      store.commit = async (wanted: Commit) => {
        const { agent } = (await store.head(wanted.threads[0]!.id)) ?? {}
        if (wanted.point === 'session_start' && agent === 'helper') throw new Error('no')
        return commit.call(store, wanted)
      }
      const it = await simulate({ agents: [boss(child({}), config)], store })
      const id = await it.create({ message: 'please' })
      await it.timers.advance(100)
      const reference = await childOf(it, id)
      for (let tries = 0; tries < 50; tries++) {
        if ((await it.events(reference, 'error_raised')).length > 0) break
        await it.timers.advance(60_000)
      }
      expect(await it.events(reference, 'error_raised')).toMatchObject([{ code: 'DRAIN_FAILED' }])
      await it.runtime.idle()
      expect(await it.events(id, 'message_queued')).toHaveLength(queued)
      expect((await it.threads.get(reference)).lifecycle).toBe(lifecycle)
    },
  )
})
