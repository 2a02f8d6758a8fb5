import { playBack } from '@skein/evals'
import { simulatedRun } from '/work/wt/evals/packages/evals/test/simulated-threads.ts'
const [from, to] = process.argv.slice(2).map(Number)
let same = 0, all = 0
const why = new Map<string, string[]>()
const t0 = performance.now(); let ms = 0
for (let seed = from; seed < to; seed++) {
  const { threads, registry, world } = await simulatedRun(seed)
  for (const thread of threads) {
    if (process.env.DUMP) for (const e of thread.events) console.log(e.seq, JSON.stringify(e.event).slice(0, 260))
    all++
    const t = performance.now()
    const report = await playBack(thread, { registry, runtime: { keys: world.keys, secretKey: world.secretKey, limits: { drainAttempts: 4, modelBackoffMs: 1000, maxHandoffs: 1, stopGraceMs: 5000 } } }).catch((e) => ({ isSame: false, difference: { message: 'threw ' + e.stack, threadId: '', seq: 0, recorded: undefined, produced: undefined } }))
    ms += performance.now() - t; console.log(seed, thread.agent, thread.events.length, Math.round(performance.now() - t), report.isSame, report.isSame ? '' : report.difference!.message.slice(0,300) + '\n   R ' + JSON.stringify(report.difference!.recorded)?.slice(0,500) + '\n   P ' + JSON.stringify(report.difference!.produced)?.slice(0,500))
    if (report.isSame) same++
    else {
      const d = report.difference!
      const key = d.message.slice(0, 130)
      why.set(key, [...(why.get(key) ?? []), `${seed} ${d.threadId.slice(-3)}@${d.seq}`])
    }
  }
}
console.log({ same, all, playMs: Math.round(ms), totalMs: Math.round(performance.now() - t0) })
for (const [k, v] of [...why].sort((a, b) => b[1].length - a[1].length)) console.log(v.length, k, v.slice(0, 4).join(', '))
process.exit(0)
