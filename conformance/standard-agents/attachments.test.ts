import { describe, expect, test } from 'vitest'
import { calls, says } from '@skein/ai/testing'
import { type AgentDefinition, defineTool, type SubagentToolConfig } from '@skein/runtime'
import { linesOf, pair, requestsOf, solo, tool, type SideSetup } from './support/agents.ts'
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

/** Files of the parent, written by its own tool. Two have the same name, one is empty. */
const sources: Readonly<Record<string, string>> = {
  '/plans/may/list.txt': 'three ships',
  '/plans/june/list.txt': 'four ships',
  '/empty.bin': '',
}

const write = tool('write', async (state) => {
  for (const [path, text] of Object.entries(sources)) await state.writeFile(path, text)
})

function boss(
  script: SideSetup['script'],
  helper: AgentDefinition,
  config: Partial<SubagentToolConfig>,
): AgentDefinition {
  return solo('boss', { script, tools: [write, { name: helper, ...config }] })
}

async function contents(it: Simulation, id: string): Promise<Record<string, string>> {
  const files = await it.threads.files.list(id)
  const read = files.map(async ({ path }) => {
    const { bytes } = await it.threads.files.read(id, path)
    return [path, new TextDecoder().decode(bytes)] as const
  })
  return Object.fromEntries(await Promise.all(read))
}

async function childOf(it: Simulation, id: string): Promise<string> {
  return (await it.events(id, 'subagent_created'))[0]!.reference
}

const local = (stem: string) => new RegExp(`^/attachments/${stem}-[0-9a-f]{8}`)

/** No path of the source is anywhere in the log of the destination. */
async function expectNoSourcePath(it: Simulation, id: string, paths: readonly string[]) {
  const log = JSON.stringify(await it.threads.events(id))
  for (const path of paths) expect(log).not.toContain(path)
}

const paths = Object.keys(sources)

describe('parent to child', () => {
  test('SA-68 SA-78 SA-80 files of the first message: copied before it is queued, under paths of the child', async () => {
    const helper = child()
    const top = boss(
      [calls('write'), calls('helper', { task: 'go', files: paths }), says('Ok.')],
      helper,
      {
        initUserMessageProperty: 'task',
        initAttachmentsProperty: 'files',
      },
    )
    const it = await simulate({ agents: [top] })
    const id = await it.create()
    const commits: string[][] = []
    const commit = it.store.commit.bind(it.store)
    it.store.commit = async (change) => {
      const made = change.threads.find(({ create }) => create)
      if (made) commits.push(made.append!.map(({ type }) => type))
      return commit(change)
    }
    await it.run(id, 'hi')
    // One commit makes the child with its files and its message, the files first.
    const [types, ...more] = commits
    expect(more).toEqual([])
    expect(types!.filter((type) => type === 'file_written')).toHaveLength(3)
    expect(types!.lastIndexOf('file_written')).toBeLessThan(types!.indexOf('message_queued'))

    const reference = await childOf(it, id)
    const copies = await contents(it, reference)
    expect(Object.values(copies).toSorted()).toEqual(['', 'four ships', 'three ships'])
    expect(Object.keys(copies).filter((path) => local('list').test(path))).toHaveLength(2)
    expect(Object.keys(copies).filter((path) => local('empty').test(path))).toHaveLength(1)
    const [queued] = await it.events(reference, 'message_queued')
    expect(queued!.attachments!.map((path) => copies[path])).toEqual([
      'three ships',
      'four ships',
      '',
    ])
    const lines = linesOf(requestsOf(helper)[0])[0]!.split('\n')
    expect(lines.slice(-3).map((line) => line.replace(/ \([^)]+ bytes\)$/, ''))).toEqual(
      queued!.attachments,
    )
    await expectNoSourcePath(it, reference, paths)
    // The originals are as they were.
    expect(await contents(it, id)).toEqual(sources)
  })

  test('SA-78 SA-80 one path instead of a list, and arguments that are the message themselves', async () => {
    const seen: unknown[] = []
    const look = tool('look', (state) => void seen.push(state.arguments))
    const helper = child({
      script: [calls('look'), calls('finish', { text: 'done' })],
      tools: [look],
    })
    const top = boss(
      [calls('write'), calls('helper', { ships: 3, file: '/plans/may/list.txt' }), says('Ok.')],
      helper,
      { initAttachmentsProperty: 'file' },
    )
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    const reference = await childOf(it, id)
    const [path] = Object.keys(await contents(it, reference))
    expect(path).toMatch(local('list'))
    expect(seen).toEqual([{ ships: 3, file: path }])
    expect(linesOf(requestsOf(helper)[0])[0]).toContain(`{"ships":3,"file":"${path}"}`)
    await expectNoSourcePath(it, reference, paths)
  })

  test('SA-78 SA-80 subagent_create: files are read from the mapped argument if the call names none itself', async () => {
    const seen: unknown[] = []
    const look = tool('look', (state) => void seen.push(state.arguments))
    const helper = child({
      script: ({ messages }) =>
        messages.at(-1)!.type === 'user' ? calls('look') : calls('finish', { text: 'done' }),
      tools: [look],
    })
    const create = (name: string, more: object) =>
      calls('subagent_create', { agent: 'helper', name, message: 'go', ...more } as never)
    const top = boss(
      [
        calls('write'),
        create('Ada', { arguments: { files: paths.slice(0, 2), ships: 3 } }),
        create('Bob', { arguments: { files: paths.slice(0, 2) }, attachments: ['/empty.bin', ''] }),
        says('Ok.'),
      ],
      helper,
      { resumable: {}, initAttachmentsProperty: 'files' },
    )
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    const [ada, bob] = await it.threads.children(id)
    const copies = await contents(it, ada!.reference)
    expect(Object.values(copies).toSorted()).toEqual(['four ships', 'three ships'])
    const [queued] = await it.events(ada!.reference, 'message_queued')
    expect(queued!.attachments!.map((path) => copies[path])).toEqual(['three ships', 'four ships'])
    expect(seen[0]).toEqual({ files: queued!.attachments, ships: 3 })
    expect(Object.values(await contents(it, bob!.reference))).toEqual([''])
    for (const { reference } of [ada!, bob!]) await expectNoSourcePath(it, reference, paths)
  })

  test('SA-68 SA-78 SA-80 files of a later message come with it', async () => {
    const helper = child()
    let reference = ''
    const top = boss(
      [
        calls('write'),
        calls('subagent_create', {
          agent: 'helper',
          name: 'Ada',
          message: 'go',
          attachments: ['/empty.bin'],
        }),
        ({ messages }) => {
          reference = /reference: ([0-9a-f-]{36})/.exec(JSON.stringify(messages))![1]!
          return calls('subagent_message', {
            reference,
            message: 'more',
            attachments: paths.slice(0, 2),
          })
        },
        says('Ok.'),
      ],
      helper,
      { resumable: {} },
    )
    const it = await simulate({ agents: [top] })
    await it.ask('hi')
    const [first, second] = await it.events(reference, 'message_queued')
    const copies = await contents(it, reference)
    expect(first!.attachments!.map((path) => copies[path])).toEqual([''])
    expect(second!.attachments!.map((path) => copies[path])).toEqual(['three ships', 'four ships'])
    const types = await it.eventTypes(reference)
    expect(types.lastIndexOf('file_written')).toBeLessThan(types.lastIndexOf('message_queued'))
    await expectNoSourcePath(it, reference, paths)
  })

  test.each([
    ['the first message', 'subagent_create', '/nowhere.txt'],
    ['a later message', 'subagent_message', '/nowhere.txt'],
    ['the first message, with a path that leads out', 'subagent_create', '/../etc/passwd'],
  ])(
    'SA-78 a file that is not there fails the call, and nothing is sent: %s',
    async (_, name, path) => {
      const helper = child()
      let reference = ''
      const attachments = ['/empty.bin', path]
      const top = boss(
        [
          calls('write'),
          calls('subagent_create', { agent: 'helper', name: 'Ada', message: 'go' }),
          ({ messages }) => {
            reference = /reference: ([0-9a-f-]{36})/.exec(JSON.stringify(messages))![1]!
            return name === 'subagent_create'
              ? calls(name, { agent: 'helper', name: 'Bob', message: 'go', attachments })
              : calls(name, { reference, message: 'more', attachments })
          },
          says('Oh.'),
        ],
        helper,
        { resumable: {} },
      )
      const it = await simulate({ agents: [top] })
      const { id, text } = await it.ask('hi')
      expect(text).toBe('Oh.')
      expect(
        linesOf(requestsOf(top)[3]).findLast((line) => line.startsWith('tool_result')),
      ).toMatch(new RegExp(`^tool_result: ${name} ! .*${path.replaceAll('.', '\\.')}`))
      expect(await it.threads.list({ parentId: id })).toHaveLength(1)
      expect(await it.threads.files.list(reference)).toEqual([])
      expect(await it.events(reference, 'message_queued')).toHaveLength(1)
    },
  )

  test('SA-67 SA-78 files alone are a message; equal files of equal names stay two', async () => {
    const twice = tool('twice', async (state) => {
      for (const path of ['/a/x.txt', '/b/x.txt']) await state.writeFile(path, 'same')
    })
    const helper = child()
    let reference = ''
    const top = solo('boss', {
      script: [
        calls('twice'),
        calls('subagent_create', { agent: 'helper', name: 'Ada', message: 'go' }),
        ({ messages }) => {
          reference = /reference: ([0-9a-f-]{36})/.exec(JSON.stringify(messages))![1]!
          const attachments = ['/a/x.txt', '/b/x.txt']
          return calls('subagent_message', { reference, message: '', attachments })
        },
        says('Ok.'),
      ],
      tools: [twice, { name: helper, resumable: {} }],
    })
    const it = await simulate({ agents: [top] })
    await it.ask('hi')
    const copies = await contents(it, reference)
    expect(Object.values(copies)).toEqual(['same', 'same'])
    const [, queued] = await it.events(reference, 'message_queued')
    expect(queued!.attachments!.toSorted()).toEqual(Object.keys(copies).toSorted())
    expect(requestsOf(helper)).toHaveLength(2)
  })

  test('SA-78 the copy is a copy: what either side changes later is its own', async () => {
    const change = tool('change', async (state) => {
      for (const { path } of state.listFiles()) await state.writeFile(path, 'changed by the child')
    })
    const helper = child({
      script: [calls('change'), calls('finish', { text: 'done' })],
      tools: [change],
    })
    const top = boss(
      [calls('write'), calls('helper', { task: 'go', files: paths }), says('Ok.')],
      helper,
      {
        initUserMessageProperty: 'task',
        initAttachmentsProperty: 'files',
      },
    )
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    expect(await contents(it, id)).toEqual(sources)
  })
})

describe('child to parent', () => {
  const made: Readonly<Record<string, string>> = {
    '/out/a/report.md': 'first',
    '/out/b/report.md': 'second',
    '/out/nothing.txt': '',
  }
  const outputs = Object.keys(made)
  const make = tool('make', async (state) => {
    for (const [path, text] of Object.entries(made)) await state.writeFile(path, text)
  })

  describe.each([
    ['completion', 'finish', 'has returned the following result'],
    ['failure', 'give_up', 'has reported a failure'],
  ] as const)('%s', (_, name, words) => {
    // Rows 70 and 79 are about completion, 72 and 79 about failure.
    const rows = name === 'finish' ? 'SA-70 SA-79 SA-80' : 'SA-72 SA-79 SA-80'

    test(`${rows} files come with the report, under paths of the parent`, async () => {
      const helper = child({
        script: [calls('make'), calls(name, { text: 'see files', files: outputs })],
        tools: [make],
      })
      const top = boss([calls('helper', { message: 'go' }), says('Ok.'), says('I see.')], helper, {
        blocking: false,
      })
      const it = await simulate({ agents: [top] })
      const { id } = await it.ask('hi')
      await it.idle()
      const reference = await childOf(it, id)
      const copies = await contents(it, id)
      expect(Object.values(copies).toSorted()).toEqual(['', 'first', 'second'])
      expect(Object.keys(copies).filter((path) => local('report').test(path))).toHaveLength(2)
      const report = (await it.events(id, 'message_queued')).find((one) => one.subagentId)
      const files = report!.attachments!
      expect(files.map((path) => copies[path])).toEqual(['first', 'second', ''])
      const text = `Subagent (reference: ${reference}) ${words}:\n\nsee files\n\n${files.join('\n')}`
      expect(linesOf(requestsOf(top)[2])).toContain(`user: ${text}`)
      await expectNoSourcePath(it, id, outputs)
      // In the log of the parent the files come before the message that names them.
      const types = await it.eventTypes(id)
      expect(types.lastIndexOf('file_written')).toBeLessThan(types.lastIndexOf('message_queued'))
      expect(await contents(it, reference)).toEqual(made)
    })

    test(`${rows} files of a blocking child come with the answer of the call`, async () => {
      const helper = child({
        script: [calls('make'), calls(name, { text: 'see file', files: '/out/a/report.md' })],
        tools: [make],
      })
      const top = boss([calls('helper', { message: 'go' }), says('Ok.')], helper, {})
      const it = await simulate({ agents: [top] })
      const { id } = await it.ask('hi')
      const [[path, text] = []] = Object.entries(await contents(it, id))
      expect(text).toBe('first')
      expect(path).toMatch(local('report'))
      const last = linesOf(requestsOf(top)[1]).at(-1)
      expect(last).toBe(
        name === 'finish'
          ? `tool_result: helper = ${JSON.stringify(`see file\n\n${path}`)}`
          : `tool_result: helper ! see file\n\n${path}`,
      )
      await expectNoSourcePath(it, id, outputs)
    })

    test(`${rows} a file that is not there fails the call, and the session continues`, async () => {
      const helper = child({
        script: [
          calls(name, { text: 'x', files: ['/nowhere.md'] }),
          calls('finish', { text: 'without' }),
        ],
      })
      const top = boss([calls('helper', { message: 'go' }), says('Ok.')], helper, {})
      const it = await simulate({ agents: [top] })
      const { id } = await it.ask('hi')
      expect(linesOf(requestsOf(helper)[1]).at(-1)).toMatch(/^tool_result: .* ! .*\/nowhere\.md/)
      expect(linesOf(requestsOf(top)[1]).at(-1)).toBe('tool_result: helper = "without"')
      expect(await it.threads.files.list(id)).toEqual([])
    })
  })

  test('SA-70 a file that is removed after it was named is left out, and the result still comes', async () => {
    const drop = tool('drop', (state) => state.removeFile('/out/a/report.md'))
    const helper = child({
      script: [calls('make'), [calls('finish', { text: 'see', files: outputs }), calls('drop')]],
      tools: [make, drop],
    })
    const top = boss([calls('helper', { message: 'go' }), says('Ok.')], helper, {})
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    expect(Object.values(await contents(it, id)).toSorted()).toEqual(['', 'second'])
  })

  test.each([
    ['/out/a.png', 'image/png', true],
    ['/out/a.pdf', 'application/pdf', true],
    ['/out/a.mp3', 'audio/mpeg', true],
    ['/out/a.csv', 'text/csv', false],
  ])(
    'SA-70 the answer of a call has %s of its child as a file, if models can see it',
    async (path, mediaType, isShown) => {
      const paint = tool('paint', async (state) => void (await state.writeFile(path, 'pixels')))
      const helper = child({
        script: [calls('paint'), calls('finish', { text: 'see', files: [path] })],
        tools: [paint],
      })
      const it = await simulate({
        agents: [boss([calls('helper', { message: 'go' }), says('Ok.')], helper, {})],
      })
      const { id } = await it.ask('hi')
      const [file] = await it.threads.files.list(id)
      const { path: copy, sizeBytes, hash } = file!
      const text = `see\n\n${copy}`
      const shown = { $file: { path: copy, mediaType, sizeBytes, hash } }
      expect((await it.events(id, 'tool_execution_end')).map(({ result }) => result)).toEqual([
        isShown ? [text, shown] : text,
      ])
    },
  )

  test('SA-79 equal files of two children stay two files of the parent', async () => {
    const helper = child({
      script: ({ messages }) =>
        messages.at(-1)!.type === 'user'
          ? calls('make')
          : calls('finish', { text: 'see', files: '/out/a/report.md' }),
      tools: [make],
    })
    const call = calls('helper', { message: 'go' })
    const it = await simulate({ agents: [boss([[call, call], says('Ok.')], helper, {})] })
    const { id } = await it.ask('hi')
    expect(Object.values(await contents(it, id))).toEqual(['first', 'first'])
  })

  test('SA-70 SA-79 a session tool of the client may name what is no path: the rest comes all the same', async () => {
    const done = defineTool({ name: 'done', description: 'At the client.', risk: 'read_only' })
    const helper = child({
      script: [calls('make'), calls('done', { files: ['out.md', '/out//a/report.md', '/../x'] })],
      tools: [make, done],
      sessionStop: { name: done, attachmentsProperty: 'files' },
    })
    const top = boss([calls('helper', { message: 'go' }), says('Ok.')], helper, {})
    const it = await simulate({ agents: [top] })
    const id = await it.create({ message: 'hi' })
    await it.idle()
    const [item] = await it.runtime.inbox.list()
    await it.runtime.inbox.answer(item!, { type: 'result', value: 'see file' })
    await it.idle()
    const [[path, text] = []] = Object.entries(await contents(it, id))
    expect(text).toBe('first')
    expect(linesOf(requestsOf(top)[1]).at(-1)).toBe(
      `tool_result: helper = ${JSON.stringify(`see file\n\n${path}`)}`,
    )
  })

  test('SA-79 SA-80 notifyParent takes files along, also ones it has just written', async () => {
    const tell = tool('tell', async (state) => {
      await state.writeFile('/out/fresh.txt', 'stale')
      await state.writeFile('/out/fresh.txt', 'fresh')
      await state.writeFile('/out/more.txt', 'more')
      state.notifyParent('look', ['/out/fresh.txt', '/out/more.txt'])
    })
    const helper = child({
      script: [calls('tell'), calls('finish', { text: 'done' })],
      tools: [tell],
    })
    const top = boss(
      [calls('helper', { message: 'go' }), says('Ok.'), says('I see.'), says('I see.')],
      helper,
      {
        blocking: false,
      },
    )
    const it = await simulate({ agents: [top] })
    const { id } = await it.ask('hi')
    await it.idle()
    const copies = Object.entries(await contents(it, id)).toSorted()
    expect(copies).toEqual([
      [expect.stringMatching(local('fresh')), 'fresh'],
      [expect.stringMatching(local('more')), 'more'],
    ])
    // In the log of the parent the files come before the message that names them.
    const log = (await it.threads.events(id)).map(({ event }) => event)
    const notice = log.findIndex((event) => event.type === 'message_queued' && event.subagentId)
    expect(log.findLastIndex(({ type }) => type === 'file_written')).toBeLessThan(notice)
    const [fresh, more] = copies.map(([path]) => path)
    expect(requestsOf(top).flatMap(linesOf)).toContain(`user: look\n\n${fresh}\n${more}`)
    await expectNoSourcePath(it, id, ['/out/fresh.txt', '/out/more.txt'])
  })
})
