export { studioFiles, type StudioFile, type StudioPage } from './files.ts'
