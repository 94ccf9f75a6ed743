# Completions for elvish: eval (spektacular completions elvish | slurp)
set edit:completion:arg-completer[spektacular] = {|@words|
    use str
    for line [(spektacular __complete .$words[-1] (all $words[1..-1]) 2>/dev/null)] {
        if (str:has-prefix $line :) {
            edit:complete-filename $words[-1]
        } else {
            var word about = (str:split &max=2 "\t" $line)
            if (eq $about '') {
                put $word
            } else {
                edit:complex-candidate $word &display=$word'  '$about
            }
        }
    }
}
