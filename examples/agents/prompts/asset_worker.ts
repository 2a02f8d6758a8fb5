import { definePrompt, type PromptDefinition } from '@skein/runtime'
import { exampleModel } from '../example-model.ts'
import { workerScript } from '../scripts/asset-pair.ts'

const assetWorker: PromptDefinition = definePrompt({
  name: 'asset_worker',
  prompt:
    'You write one-line labels. Answer with the label alone; fix it when you are given a reason.',
  model: exampleModel('asset_worker_script', workerScript),
})

export default assetWorker
