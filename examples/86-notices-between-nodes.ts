/**
 * Nodes tell one another what they have committed, over one connection with LISTEN and NOTIFY. Notices only make
 * things early; what they are about is in the store.
 *
 * Prints:
 *
 *     node 2 looks everything up once
 *     node 2 is notified: thread a has 4 events and is due
 *     node 2 is notified: the drain of b has to end: stopped
 */

// #region program
import { postgresLink } from '@skein/postgres'
import { database } from './postgres-database.ts'

const { url, stop } = await database()
const [first, second] = [
  postgresLink({ connectionString: url }),
  postgresLink({ connectionString: url }),
]
let finish = (): void => {}
const finished = new Promise<void>((resolve) => (finish = resolve))
await first.start({ gap() {}, notice() {} })
await second.start({
  gap: () => console.log('node 2 looks everything up once'),
  notice(notice) {
    const { threadId } = notice
    if (notice.type === 'committed')
      console.log(`node 2 is notified: thread ${threadId} has ${notice.seq} events and is due`)
    if (notice.type !== 'interrupt') return
    console.log(`node 2 is notified: the drain of ${threadId} has to end: ${notice.reason}`)
    finish()
  },
})
first.send({ type: 'committed', threadId: 'a', seq: 3, isDue: true })
first.send({ type: 'committed', threadId: 'a', seq: 4, isDue: false }) // joined with the one before
first.send({ type: 'interrupt', threadId: 'b', reason: 'stopped' })
await finished
await first.stop()
await second.stop()
// #endregion program
await stop()
