// Appends turns to a thread log, as soon as the parent says so, until the given number was accepted. After a conflict
// it opens the log again, as a caller has to. Sends the ids of the accepted turns.
import { openThreadLogFile } from '../src/log/thread-log-node.ts'

const [path, name, count] = process.argv.slice(2) as [string, string, string]

async function appendAll(): Promise<readonly string[]> {
  const accepted: string[] = []
  while (accepted.length < Number(count)) {
    const log = await openThreadLogFile(path)
    const turn_id = `${name}${accepted.length}`
    const parts = [{ part_kind: 'user-prompt', content: 'x' }] as const
    try {
      await log.append({ turn_type: 'user', turn_id, submitted_at: '2026-01-01T00:00:00Z', parts })
      accepted.push(turn_id)
    } catch (error) {
      if ((error as { readonly code?: string }).code !== 'LOG_CONFLICT') throw error
    } finally {
      await log.close()
    }
  }
  return accepted
}

process.once('message', async () => {
  process.send!(await appendAll())
  process.disconnect()
})
process.send!('ready')
