/** Run by tree-crash.test.ts: works on a tree in a folder and kills itself at a point. */
import { type CheckpointStore, fileCheckpoints } from '@skein/agents/checkpoint'
import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { liveTree } from './tree-run.ts'

const [dir = '', dies = 'Infinity'] = process.argv.slice(2)
const files = fileCheckpoints({ dir: join(dir, 'checkpoints'), journal: true })
let left = Number(dies)

async function point(): Promise<void> {
  if (--left <= 0) process.kill(process.pid, 'SIGKILL')
}

const log = lines('log.txt')
const store: CheckpointStore = {
  ...files,
  save: async (id, state) => (await files.save(id, state), point()),
  record: async (id, entry) => {
    await files.record!(id, entry)
    log.push(`recorded ${id}:${entry.toolCallId}`)
    return point()
  },
  delete: async (id) => (await files.delete(id), point()),
}

/** A list on the disk: what is pushed has happened. */
function lines(name: string): string[] {
  const list: string[] = []
  list.push = (...items) => {
    for (const item of items) appendFileSync(join(dir, name), `${item}\n`)
    return 0
  }
  return list
}

const plan = { topRounds: 1, children: 2, leaves: 1, asks: true }
const world = { plan, store, point, log }
const { state } = await liveTree(world, lines('asked.txt'))
writeFileSync(join(dir, 'answer.json'), JSON.stringify(state.messages.map(({ type }) => type)))
