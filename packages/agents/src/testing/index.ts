export { describeCheckpointStore } from './checkpoint-store-suite.ts'
export { recordEvents, type RecordedRun } from './scripted-agent.ts'
export { scriptedAgent, type ScriptedAgent } from './scripted-agent.ts'
