// Files that parents and children hand over: the form of their paths, their type, and how long they live.
import { expect, test } from 'vitest'
import type { JsonValue } from '@skein/base'
import { calls, says } from '@skein/ai/testing'
import type { AgentDefinition } from '@skein/runtime'
import { pair, solo, tool, type SideSetup } from './support/agents.ts'
import { simulate, type Simulation } from './support/simulate.ts'

const finish = tool('finish')
const giveUp = tool('give_up')

function child(side: Partial<SideSetup> = {}): AgentDefinition {
  const { tools = [], ...rest } = side
  const bound = { messageProperty: 'text', attachmentsProperty: 'files' }
  return pair('helper', {
    a: {
      script: () => calls('finish', { text: 'done' }),
      sessionStop: { name: finish, ...bound },
      sessionFail: { name: giveUp, ...bound },
      ...rest,
      tools: [finish, giveUp, ...tools],
    },
    b: { script: [] },
  })
}

const type = 'application/x-chart'
const write = tool('write', async (state) => {
  for (const name of ['one', 'two'])
    await state.writeFile(`/out/${name}`, name, { mediaType: type })
})

async function filesOf(it: Simulation, id: string) {
  const files = await it.threads.files.list(id, '/attachments')
  return Promise.all(
    files.map(async ({ path, mediaType }) => {
      const { bytes } = await it.threads.files.read(id, path)
      return { path, mediaType, text: new TextDecoder().decode(bytes) }
    }),
  )
}

const forms: readonly [form: JsonValue, texts: readonly string[]][] = [
  ['/out/one', ['one']],
  [['/out/one'], ['one']],
  [
    ['/out/one', '/out/two'],
    ['one', 'two'],
  ],
  ['//out//one', ['one']],
  [
    ['/out//one', '//out/two'],
    ['one', 'two'],
  ],
]

test.each(
  forms.flatMap(([form, texts]) => ['a tool', 'arguments'].map((by) => [by, form, texts] as const)),
)(
  'SA-66 SA-78 SA-80 %s with the files %j: the child has them, and its arguments name them in the same form',
  async (by, form, texts) => {
    const seen: unknown[] = []
    const helper = child({
      script: [calls('look'), calls('finish', { text: 'done' })],
      tools: [tool('look', (state) => void seen.push(state.arguments))],
    })
    const isDirect = by === 'a tool'
    const given = { message: 'go', files: form }
    const top = solo('boss', {
      script: [
        calls('write'),
        isDirect
          ? calls('helper', given)
          : calls('subagent_create', { agent: 'helper', name: 'Ada', arguments: given }),
        says('Done.'),
      ],
      tools: [
        write,
        { name: helper, initAttachmentsProperty: 'files', ...(!isDirect && { resumable: {} }) },
      ],
    })
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    const [made] = await it.events(id, 'subagent_created')
    const files = await filesOf(it, made!.reference)
    expect(files.map(({ text }) => text).toSorted()).toEqual(texts)
    expect(files.every(({ mediaType }) => mediaType === type)).toBe(true)
    const paths = texts.map((text) => files.find((file) => file.text === text)!.path)
    expect(seen).toEqual([{ message: 'go', files: Array.isArray(form) ? paths : paths[0] }])
  },
)

test.each(
  forms.flatMap(([form, texts]) =>
    ['finish', 'give_up', 'stopSession', 'notifyParent'].map((by) => [by, form, texts] as const),
  ),
)(
  'SA-70 SA-72 SA-79 %s with the files %j: the parent has them, with their type, also when the child is erased',
  async (by, form, texts) => {
    const attachments = [form].flat() as string[]
    const end = tool('end', (state) => {
      if (by === 'notifyParent') state.notifyParent('Look.', attachments)
      state.stopSession({ result: 'done', ...(by === 'stopSession' && { attachments }) })
    })
    const helper = child({
      script: [
        calls('write'),
        by === 'finish' || by === 'give_up'
          ? calls(by, { text: 'done', files: form })
          : calls('end'),
      ],
      tools: [write, end],
    })
    const top = solo('boss', {
      script: (_, index) => (index === 0 ? calls('helper', { message: 'go' }) : says('I see.')),
      tools: [{ name: helper, blocking: false }],
    })
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    await it.idle()
    const [made] = await it.events(id, 'subagent_created')
    const before = await filesOf(it, id)
    expect(before.map(({ text, mediaType }) => [text, mediaType]).toSorted()).toEqual(
      texts.map((text) => [text, type]),
    )
    const sent = (await it.events(id, 'message_queued')).filter(({ attachments: some }) => some)
    expect(sent.map((one) => one.attachments?.toSorted())).toEqual([
      before.map(({ path }) => path).toSorted(),
    ])
    await it.threads.erase(made!.reference)
    await it.threads.remove(made!.reference)
    expect(await filesOf(it, id)).toEqual(before)
  },
)
