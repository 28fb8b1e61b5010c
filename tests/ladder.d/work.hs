import Data.List
import qualified Data.Map as M
main = do
  let m = foldl' (\a k -> M.insertWith (+) (k `mod` 97) k a) M.empty [1..20000::Int]
  print (M.foldl' (+) 0 m, take 5 (M.toList m))
