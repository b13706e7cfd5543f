/** One thread: runs the jobs that it is told, one after another. */
import { parentPort } from 'node:worker_threads'
import { searchDefect } from './defects/search.ts'
import { loadSimulation, prepareThread } from './loading/thread.ts'
import type { Job, JobResult } from './seeds.ts'

const port = parentPort
if (port === null) throw new Error('this is no thread of its own')

const engine = await prepareThread()

async function work(job: Job): Promise<JobResult> {
  if (job.kind === 'search') return { kind: 'search', finding: await searchDefect(engine, job.search) }
  const { runSeed } = await loadSimulation(0)
  return { kind: 'seed', result: await runSeed(job.seed, { engine, historyLines: job.historyLines }) }
}

port.on('message', (job: Job) => {
  work(job).then(
    (result) => port.postMessage(result),
    (error: unknown) => {
      // Told as an error of the thread: whoever asked hears it.
      setImmediate(() => {
        throw error
      })
    },
  )
})
