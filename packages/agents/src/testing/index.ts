export {
  describeCheckpointStore,
  type StoreSuite,
  type TestFunctions,
} from './checkpoint-store-suite.ts'
export { recordEvents, type RecordedRun } from './record-events.ts'
export { scriptedAgent, type ScriptedAgent } from './scripted-agent.ts'
