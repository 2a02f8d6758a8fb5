import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createClient } from '@skein/server/client'
import { noPostgres, startPostgres, type TestPostgres } from '../../postgres/test/server.ts'
import { type Balancer, startBalancer } from '../../restate/test/balancer.ts'
import {
  freePorts,
  missingRestate,
  type RestateServer,
  startRestate,
} from '../../restate/test/server.ts'
import { Running, skein, tempFolder } from './kit.ts'

const apiKey = 'a-key-of-this-test-that-is-long-enough'
const sha256 = createHash('sha256').update(apiKey).digest('hex')

/** Definitions of one version: an agent that waits for an approval, whose tool only this version has. */
function writeVersion(folder: string, version: string): void {
  for (const name of ['agents', 'prompts', 'tools'])
    mkdirSync(join(folder, name), { recursive: true })
  writeFileSync(
    join(folder, 'agents/payer.ts'),
    `import { defineAgent } from '@skein/runtime'
    export default defineAgent({ name: 'payer', sideA: { prompt: 'payer' } })`,
  )
  writeFileSync(
    join(folder, 'prompts/payer.ts'),
    `import { definePrompt } from '@skein/runtime'
    import { calls, says, scripted } from '@skein/ai/testing'
    export default definePrompt({
      name: 'payer',
      prompt: 'You pay.',
      tools: ['pay_${version}'],
      model: scripted(({ messages }) =>
        messages.at(-1)?.type === 'tool_result'
          ? says('Paid by ${version}: ' + messages.at(-1).results[0].result)
          : calls('pay_${version}', {})),
    })`,
  )
  writeFileSync(
    join(folder, `tools/pay_${version}.ts`),
    `import { toolFrom } from '@skein/runtime'
    export default toolFrom(
      { name: 'pay_${version}', description: 'Pays.', parameters: { type: 'object' }, run: () => 'done' },
      { risk: 'write_high_risk', rollback: 'impossible' },
    )`,
  )
}

describe.skipIf(noPostgres !== undefined || missingRestate() !== undefined)(
  'a rolling upgrade',
  () => {
    let postgres: TestPostgres
    let restate: RestateServer
    let balancer: Balancer
    beforeAll(async () => {
      ;[postgres, restate, balancer] = await Promise.all([
        startPostgres(),
        startRestate(),
        startBalancer(),
      ])
    }, 120_000)
    afterAll(async () => {
      await Promise.all([postgres?.stop(), restate?.stop(), balancer?.stop()])
    }, 60_000)

    async function newDatabase(name: string): Promise<string> {
      const client = new pg.Client(postgres.url)
      await client.connect()
      await client.query(`CREATE DATABASE ${name}`)
      await client.end()
      return postgres.url.replace(/\/postgres$/, `/${name}`)
    }

    test.each(['local', 'restate'] as const)(
      'of `serve` with the engine %s: each session ends with the version with which it began, and none fails',
      async (engine) => {
        const cwd = tempFolder()
        for (const version of ['one', 'two']) writeVersion(join(cwd, version), version)
        await skein(['keys', 'governance.json'], { cwd })
        const ports = await freePorts(4)
        const env = {
          SKEIN_STORE: await newDatabase(`upgrade_${engine}`),
          SKEIN_SECRET_KEY: randomBytes(32).toString('base64'),
          SKEIN_NODE_SECRET: randomBytes(32).toString('hex'),
        }
        const start = async (index: number, own: object) => {
          const [port, restatePort] = [ports[index * 2]!, ports[index * 2 + 1]!]
          balancer.add(`http://127.0.0.1:${restatePort}`)
          const config = {
            port,
            engine,
            nodeAddress: `http://127.0.0.1:${port}`,
            governanceKeys: 'governance.json',
            authKeys: [{ sha256, tenant: 'acme', scopes: ['admin'] }],
            ...(engine === 'restate' && {
              restateIngress: restate.ingressUrl,
              restateAdmin: restate.adminUrl,
              restateAddress: balancer.url,
              restatePort,
            }),
            ...own,
          }
          writeFileSync(join(cwd, `node${index}.json`), JSON.stringify(config))
          const running = new Running(['serve', '--scripted', '--config', `node${index}.json`], {
            cwd,
            env,
          })
          await running.until('stderr', '"listening"')
          return { running, client: createClient({ url: `http://127.0.0.1:${port}`, apiKey }) }
        }
        type Node = Awaited<ReturnType<typeof start>>
        const create = async ({ client }: Node, count: number): Promise<string[]> => {
          const made = Array.from({ length: count }, () =>
            client.threads.create({ agent: 'payer', message: 'go' }),
          )
          return (await Promise.all(made)).map(({ id }) => id)
        }
        const approve = async ({ client }: Node, ids: readonly string[]): Promise<void> => {
          for (const id of ids)
            for (let isDone = false; !isDone; await new Promise((go) => setTimeout(go, 50))) {
              const [item] = await client.inbox.list({ rootId: id })
              if (item) await client.inbox.approve(item)
              isDone = item !== undefined
            }
        }
        const saidBy = async ({ client }: Node, ids: readonly string[]) =>
          Promise.all(ids.map(async (id) => (await client.threads.settled(id)).text))

        const before = await start(0, { agents: 'one' })
        const old = await create(before, 4)
        const next = await start(1, { agents: 'two', previous: 'one' })
        const fresh = await create(next, 4)
        // Whichever node is asked, and whichever is woken first.
        await approve(next, old.slice(0, 2))
        await approve(before, fresh.slice(0, 2))
        const one = 'Paid by one: done'
        const two = 'Paid by two: done'
        expect(await saidBy(next, old.slice(0, 2))).toEqual([one, one])
        // With an engine either node may have begun a session; it ends as it began.
        for (const said of await saidBy(next, fresh.slice(0, 2))) expect([one, two]).toContain(said)
        before.running.signal('SIGTERM')
        await approve(next, [...old.slice(2), ...fresh.slice(2)])
        expect(await saidBy(next, old.slice(2))).toEqual([one, one])
        for (const said of await saidBy(next, fresh.slice(2))) expect([one, two]).toContain(said)
        expect((await before.running.ended).code).toBe(0)
        // The next session of an old thread begins with the new version.
        await next.client.threads.send(old[0]!, 'again')
        await approve(next, [old[0]!])
        expect(await saidBy(next, [old[0]!])).toEqual([two])
        for (const { id, lifecycle } of await next.client.threads.list({ limit: 100 }))
          expect([id, lifecycle]).toEqual([id, 'idle'])
        // The old node says that it gives back a session of the new version; nothing else went wrong.
        const failures = [before, next].flatMap(({ running }) =>
          running.stderr
            .split('\n')
            .filter((line) => /"level":(?:50|60)/.test(line) && !line.includes('"AGENT_CHANGED"')),
        )
        expect(failures).toEqual([])
        next.running.signal('SIGTERM')
        expect((await next.running.ended).code).toBe(0)
      },
      180_000,
    )
  },
)
